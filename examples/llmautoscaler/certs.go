package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	certLife  = 365 * 24 * time.Hour
	certRenew = certLife / 3 // what is left when a certificate is made anew
	caKey     = "ca.crt"
)

// A keeper makes the webhook's certificate, keeps it in a Secret that all replicas share, and tells the API server by
// the webhook's configuration whom to trust. So nothing else needs to be installed for it.
type keeper struct {
	client    client.Client // without a cache
	namespace string
	secret    string
	service   string
	config    string
	logger    *slog.Logger
	now       func() time.Time
}

// certificate returns the certificate in force, after it was made or renewed if need be.
func (k *keeper) certificate(ctx context.Context) (tls.Certificate, error) {
	var last error
	for range 5 { // two replicas may do this at the same time: one of them writes, the other reads what it wrote
		secret, err := k.ensure(ctx)
		if err != nil {
			last = fmt.Errorf("certificate of the webhook: %w", err)
		} else if err = k.trust(ctx, secret.Data[caKey]); err != nil {
			last = fmt.Errorf("authority of the webhook: %w", err)
		} else {
			return tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return tls.Certificate{}, last
}

func (k *keeper) ensure(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.client.Get(ctx, types.NamespacedName{Namespace: k.namespace, Name: k.secret}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	missing := err != nil
	if !missing && k.good(secret.Data) {
		return secret, nil
	}
	data, err := issue(k.host(), k.now())
	if err != nil {
		return nil, err
	}
	secret.Data = data
	if missing {
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: k.namespace, Name: k.secret}
		secret.Type = corev1.SecretTypeTLS
		k.logger.Info("webhook certificate made", "secret", k.secret)
		return secret, k.client.Create(ctx, secret)
	}
	k.logger.Info("webhook certificate renewed", "secret", k.secret)
	return secret, k.client.Update(ctx, secret)
}

func (k *keeper) host() string { return k.service + "." + k.namespace + ".svc" }

// good reports whether a certificate is there, is the service's, is in force and lasts for long enough, and whether those who
// trust the authority beside it trust it.
func (k *keeper) good(data map[string][]byte) bool {
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(data[caKey]) {
		return false
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	now := k.now()
	if err != nil || cert.VerifyHostname(k.host()) != nil || now.Before(cert.NotBefore) || !now.Add(certRenew).Before(cert.NotAfter) {
		return false
	}
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	_, err = cert.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err == nil
}

// trust puts the authority into the configuration. The one before stays beside it, for replicas that still have its
// certificate.
func (k *keeper) trust(ctx context.Context, ca []byte) error {
	config := &admissionv1.ValidatingWebhookConfiguration{}
	if err := k.client.Get(ctx, types.NamespacedName{Name: k.config}, config); err != nil {
		return err
	}
	changed := false
	for i := range config.Webhooks {
		bundle := &config.Webhooks[i].ClientConfig.CABundle
		if bytes.Contains(*bundle, ca) {
			continue
		}
		block, _ := pem.Decode(*bundle)
		*bundle = bytes.Clone(ca)
		if block != nil {
			*bundle = append(*bundle, pem.EncodeToMemory(block)...)
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return k.client.Update(ctx, config)
}

// issue makes a certificate that signs itself: its holder is the only one to trust.
func issue(host string, now time.Time) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key) // with a serial number of its own
	if err != nil {
		return nil, err
	}
	secret, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	return map[string][]byte{
		caKey: text, corev1.TLSCertKey: text, corev1.TLSPrivateKeyKey: secret,
	}, nil
}

var errNoNamespace = errors.New("the namespace of this pod is not known: set POD_NAMESPACE, or give -webhook-cert-dir")
