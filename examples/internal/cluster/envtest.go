//go:build !windows

package cluster

import "sigs.k8s.io/controller-runtime/pkg/envtest"

// InstallCRDs installs the custom resource definitions of files and folders, and waits until their resources are served.
func (c *Cluster) InstallCRDs(paths ...string) error {
	_, err := envtest.InstallCRDs(c.Config(), envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true})
	return err
}

// InstallWebhooks installs the webhook configurations of files, which then call a program on this machine, and makes its
// certificate.
func (c *Cluster) InstallWebhooks(paths ...string) (Webhooks, error) {
	o := envtest.WebhookInstallOptions{Paths: paths}
	err := o.Install(c.Config())
	return Webhooks{Host: o.LocalServingHost, Port: o.LocalServingPort, CertDir: o.LocalServingCertDir}, err
}
