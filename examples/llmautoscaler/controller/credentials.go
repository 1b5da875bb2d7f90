package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/policy"
)

// CredentialsLabel is the label that a Secret must have, with the value true, for its contents to be used: who can
// write an LLMAutoScaler must not be able to have any Secret sent to a pod.
const CredentialsLabel = v1alpha1.Group + "/scrape-credentials"

// credentialsAge is how often Secrets are read again.
const credentialsAge = time.Minute

// A credentials keeps what an object refers to in files, which its scraper reads again when they change. Contents go
// into no error and no log.
type credentials struct {
	secrets   client.Reader
	dir       string
	namespace string
	read      time.Time
	spec      *policy.Scrape // what was read for
	ca, token string         // files; empty if there is none
}

func newCredentials(secrets client.Reader, dir string, las *v1alpha1.LLMAutoScaler) *credentials {
	return &credentials{secrets: secrets, dir: filepath.Join(dir, string(las.UID)), namespace: las.Namespace}
}

// refresh reads the Secrets if that was not done for a while, or was done for another spec.
func (c *credentials) refresh(ctx context.Context, s *policy.Scrape, now time.Time) error {
	age := now.Sub(c.read)
	if !c.read.IsZero() && age >= 0 && age < credentialsAge && equality.Semantic.DeepEqual(c.spec, s) {
		return nil
	}
	var ca, token string
	var err error
	if s.TLS != nil {
		if ca, err = c.fetch(ctx, s.TLS.CASecretRef, "ca.crt"); err != nil {
			return fmt.Errorf("spec.scrape.tls.caSecretRef: %w", err)
		}
	}
	if token, err = c.fetch(ctx, s.BearerTokenSecretRef, "token"); err != nil {
		return fmt.Errorf("spec.scrape.bearerTokenSecretRef: %w", err)
	}
	for _, old := range []string{c.ca, c.token} {
		if old != "" && old != ca && old != token {
			_ = os.Remove(old) // nothing reads it any more
		}
	}
	c.ca, c.token, c.read, c.spec = ca, token, now, s.DeepCopy()
	return nil
}

// fetch writes a key of a Secret to a file.
func (c *credentials) fetch(ctx context.Context, ref *policy.SecretKeyReference, key string) (string, error) {
	if ref == nil {
		return "", nil
	}
	if ref.Key != "" {
		key = ref.Key
	}
	secret := &corev1.Secret{}
	if err := c.secrets.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: ref.Name}, secret); err != nil {
		return "", err
	}
	if secret.Labels[CredentialsLabel] != "true" {
		return "", fmt.Errorf("secret %q does not have the label %s: \"true\"", ref.Name, CredentialsLabel)
	}
	data := secret.Data[key]
	if len(data) == 0 {
		return "", fmt.Errorf("secret %q has no key %q", ref.Name, key)
	}
	return c.write(ref.Name+"."+key, data)
}

// write replaces a file in one step, if it is not as it should be.
func (c *credentials) write(name string, data []byte) (string, error) {
	file := filepath.Join(c.dir, name)
	if old, err := os.ReadFile(file); err == nil && string(old) == string(data) {
		return file, nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return "", err
	}
	return file, os.Rename(file+".new", file)
}

func (c *credentials) remove() {
	_ = os.RemoveAll(c.dir) // what is left is in the memory of a pod that ends
}
