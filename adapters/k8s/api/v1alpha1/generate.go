package v1alpha1

//go:generate ../generate.sh
