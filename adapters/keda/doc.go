// Package keda is an external scaler for KEDA.
package keda
