package controller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// CredentialsLabel is the label that a Secret must have, with the value true, for its contents to be used: who can
// write an LLMAutoScaler must not be able to have any Secret sent to a pod.
const CredentialsLabel = v1alpha1.Group + "/scrape-credentials"

const (
	// credentialsAge is how often Secrets are read again.
	credentialsAge = time.Minute
	// mostCredentials is how many bytes of Secrets the objects of a namespace may refer to together, each counted for each object
	// that does, in whole pages: the files are in memory, and all namespaces share a directory of 64 MiB. A pod that fills it is
	// evicted.
	mostCredentials = 4 << 20
	// With more than crowded bytes in all, a namespace may have an equal part of them, and nobody gets more than full.
	crowded = 40 << 20
	full    = 56 << 20
	page    = 4 << 10
)

// A vault counts what is kept of Secrets, by namespace.
type vault struct {
	mu  sync.Mutex
	of  map[string]int
	all int
}

// hold replaces so many bytes of a namespace by others, unless these are too many.
func (v *vault) hold(namespace string, before, now int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	own, all, most := v.of[namespace]-before+now, v.all-before+now, mostCredentials
	tenants := len(v.of)
	if _, ok := v.of[namespace]; !ok {
		tenants++
	}
	isCrowded := all > crowded
	if isCrowded {
		most = min(most, crowded/tenants)
	}
	switch {
	case own > most && (now > before || isCrowded && now > 0):
		return &scaling.FieldError{Field: "spec.scrape", Value: own, Rule: fmt.Sprintf("the LLMAutoScalers of a namespace must refer to at most %d bytes of Secrets", most)}
	case now > before && all > full:
		return fmt.Errorf("spec.scrape: %d bytes of Secrets are kept for all namespaces: must be at most %d", all, full)
	}
	v.all = all
	if v.of[namespace] = own; own == 0 {
		delete(v.of, namespace)
	}
	return nil
}

// pages is how many bytes a file takes in memory.
func pages(size int) int { return (size + page - 1) / page * page }

// A credentials keeps what an object refers to in files, which its scraper reads again when they change. Contents go
// into no error and no log.
type credentials struct {
	secrets   client.Reader
	vault     *vault
	held      int // bytes, in the vault
	dir       string
	namespace string
	read      time.Time
	spec      *policy.Scrape // what was read for
	ca, token string         // files; empty if there is none
}

// refresh reads the Secrets if that was not done for a while, or was done for another spec.
func (c *credentials) refresh(ctx context.Context, s *policy.Scrape, now time.Time) error {
	age := now.Sub(c.read)
	if !c.read.IsZero() && age >= 0 && age < credentialsAge && equality.Semantic.DeepEqual(c.spec, s) {
		return nil
	}
	var caData, tokenData []byte
	var err error
	var authority *policy.SecretKeyReference
	if s.TLS != nil {
		authority = s.TLS.CASecretRef
	}
	if caData, err = c.fetch(ctx, authority, caKey); err != nil {
		return fmt.Errorf("spec.scrape.tls.caSecretRef: %w", err)
	}
	if tokenData, err = c.fetch(ctx, s.BearerTokenSecretRef, tokenKey); err != nil {
		return fmt.Errorf("spec.scrape.bearerTokenSecretRef: %w", err)
	}
	size := pages(len(caData)) + pages(len(tokenData))
	if err := c.vault.hold(c.namespace, c.held, size); err != nil {
		if size <= c.held {
			c.remove() // room for others
		}
		return err
	}
	c.held = size
	ca, err := c.write(authority, caKey, caData)
	if err != nil {
		return err
	}
	token, err := c.write(s.BearerTokenSecretRef, tokenKey, tokenData)
	if err != nil {
		return err
	}
	for _, old := range []string{c.ca, c.token} {
		if old != "" && old != ca && old != token {
			_ = os.Remove(old) // nothing reads it any more
		}
	}
	c.ca, c.token, c.read, c.spec = ca, token, now, s.DeepCopy()
	return nil
}

// Keys of Secrets where a reference names none.
const (
	caKey    = "ca.crt"
	tokenKey = "token"
)

// fetch reads a key of a Secret; without a reference there is nothing to read.
func (c *credentials) fetch(ctx context.Context, ref *policy.SecretKeyReference, otherwise string) ([]byte, error) {
	if ref == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := c.secrets.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: ref.Name}, secret); err != nil {
		return nil, err
	}
	if secret.Labels[CredentialsLabel] != "true" {
		return nil, fmt.Errorf("secret %q does not have the label %s: \"true\"", ref.Name, CredentialsLabel)
	}
	key := cmp.Or(ref.Key, otherwise)
	data := secret.Data[key]
	if len(data) == 0 {
		return nil, fmt.Errorf("secret %q has no key %q", ref.Name, key)
	}
	return data, nil
}

// write replaces the file of a key of a Secret in one step, if it is not as it should be. Without a reference there is none.
func (c *credentials) write(ref *policy.SecretKeyReference, otherwise string, data []byte) (string, error) {
	if ref == nil {
		return "", nil
	}
	sum := sha256.Sum256([]byte(ref.Name + "@" + cmp.Or(ref.Key, otherwise))) // no name and no key has an @; together they are too long
	file := filepath.Join(c.dir, hex.EncodeToString(sum[:]))
	if old, err := os.ReadFile(file); err == nil && string(old) == string(data) {
		return file, nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", notKept(err)
	}
	if err := os.WriteFile(file+"@new", data, 0o600); err != nil {
		return "", notKept(err)
	}
	if err := os.Rename(file+"@new", file); err != nil {
		return "", notKept(err)
	}
	return file, nil
}

// notKept is the error of a file without its path, which is nobody's business.
func notKept(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("keep what was read of a Secret: %w", err)
}

// remove ends what is kept. It is read again by the next refresh.
func (c *credentials) remove() {
	_ = c.vault.hold(c.namespace, c.held, 0) // none are never too many
	c.held, c.ca, c.token, c.read = 0, "", "", time.Time{}
	_ = os.RemoveAll(c.dir) // what is left is in the memory of a pod that ends
}
