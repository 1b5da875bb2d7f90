package cluster

import "errors"

// controller-runtime v0.25 declares signalProcess of its envtest twice on Windows (its pull request 3586).
var errWindows = errors.New("envtest of controller-runtime v0.25 does not compile on Windows")

// InstallCRDs refuses: see errWindows.
func (*Cluster) InstallCRDs(...string) error { return errWindows }

// InstallWebhooks refuses: see errWindows.
func (*Cluster) InstallWebhooks(...string) (Webhooks, error) { return Webhooks{}, errWindows }
