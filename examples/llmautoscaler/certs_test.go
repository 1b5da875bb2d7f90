package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestKeeper makes a certificate, that the API server trusts by the webhook's configuration, and renews it in time.
func TestKeeper(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "llmautoscaler"}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "a"}},
	}).Build()
	now := time.Now()
	k := &keeper{
		client: c, namespace: "system", secret: "cert", service: "hook", config: "llmautoscaler", logger: slog.New(slog.DiscardHandler),
		now: func() time.Time { return now },
	}
	trusted := func() []byte {
		config := &admissionv1.ValidatingWebhookConfiguration{}
		require.NoError(t, c.Get(t.Context(), types.NamespacedName{Name: "llmautoscaler"}, config))
		return config.Webhooks[0].ClientConfig.CABundle
	}
	first, err := k.certificate(t.Context())
	require.NoError(t, err)
	require.NoError(t, shake(now, first, trusted(), "hook.system.svc"))
	require.Error(t, shake(now, first, trusted(), "other.system.svc"))

	again, err := k.certificate(t.Context()) // another replica
	require.NoError(t, err)
	require.Equal(t, first.Certificate, again.Certificate)

	now = now.Add(certLife - certRenew - time.Hour)
	again, err = k.certificate(t.Context())
	require.NoError(t, err)
	require.Equal(t, first.Certificate, again.Certificate)
	now = now.Add(2 * time.Hour)
	next, err := k.certificate(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, first.Certificate, next.Certificate)
	require.NoError(t, shake(now, next, trusted(), "hook.system.svc"))
	require.NoError(t, shake(now, first, trusted(), "hook.system.svc"), "a replica that has not looked yet")

	secret := &corev1.Secret{}
	require.NoError(t, c.Get(t.Context(), types.NamespacedName{Namespace: "system", Name: "cert"}, secret))
	secret.Data[corev1.TLSPrivateKeyKey] = []byte("damaged")
	require.NoError(t, c.Update(t.Context(), secret))
	mended, err := k.certificate(t.Context())
	require.NoError(t, err)
	require.NoError(t, shake(now, mended, trusted(), "hook.system.svc"))

	k.service = "renamed"
	renamed, err := k.certificate(t.Context())
	require.NoError(t, err)
	require.NoError(t, shake(now, renamed, trusted(), "renamed.system.svc"))

	k.config = "none"
	_, err = k.certificate(t.Context())
	require.ErrorContains(t, err, "authority of the webhook")
	require.NoError(t, client.IgnoreNotFound(err))
}

// TestKeeperDistrusts: a certificate that the API server would not accept, by its authority or by the clock, is made anew.
func TestKeeperDistrusts(t *testing.T) {
	now := time.Now()
	other, err := issue("hook.system.svc", now)
	require.NoError(t, err)
	future, err := issue("hook.system.svc", now.Add(48*time.Hour)) // by a replica whose clock was wrong
	require.NoError(t, err)
	for name, damage := range map[string]func(data map[string][]byte){
		"an authority that is none": func(data map[string][]byte) { data[caKey] = []byte("damaged") },
		"another authority":         func(data map[string][]byte) { data[caKey] = other[caKey] },
		"from the future":           func(data map[string][]byte) { maps.Copy(data, future) },
	} {
		t.Run(name, func(t *testing.T) {
			data, err := issue("hook.system.svc", now)
			require.NoError(t, err)
			damage(data)
			c := fake.NewClientBuilder().WithObjects(
				&admissionv1.ValidatingWebhookConfiguration{
					ObjectMeta: metav1.ObjectMeta{Name: "llmautoscaler"}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "a"}},
				},
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "cert"}, Type: corev1.SecretTypeTLS, Data: data},
			).Build()
			k := &keeper{
				client: c, namespace: "system", secret: "cert", service: "hook", config: "llmautoscaler", logger: slog.New(slog.DiscardHandler),
				now: func() time.Time { return now },
			}
			pair, err := k.certificate(t.Context())
			require.NoError(t, err)
			config := &admissionv1.ValidatingWebhookConfiguration{}
			require.NoError(t, c.Get(t.Context(), types.NamespacedName{Name: "llmautoscaler"}, config))
			require.NoError(t, shake(now, pair, config.Webhooks[0].ClientConfig.CABundle, "hook.system.svc"))
			again, err := k.certificate(t.Context())
			require.NoError(t, err)
			require.Equal(t, pair.Certificate, again.Certificate, "it is kept")
		})
	}
}

// TestKeepersTogether: replicas that start together do the same, and each write of one can come between a read and a
// write of another.
func TestKeepersTogether(t *testing.T) {
	var meet bool // whether another replica is as far as this one
	var c client.WithWatch
	replica := func() *keeper {
		return &keeper{client: c, namespace: "system", secret: "cert", service: "hook", config: "llmautoscaler", logger: slog.New(slog.DiscardHandler), now: time.Now}
	}
	before := func() {
		if meet {
			meet = false
			_, err := replica().certificate(t.Context())
			require.NoError(t, err)
		}
	}
	for _, at := range []string{"Secret", "ValidatingWebhookConfiguration"} {
		c = fake.NewClientBuilder().WithObjects(&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "llmautoscaler"}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "a"}},
		}).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if at == "Secret" {
					before()
				}
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if at != "Secret" {
					before()
				}
				return c.Update(ctx, o, opts...)
			},
		}).Build()
		meet = true
		first, err := replica().certificate(t.Context())
		require.NoError(t, err, at)
		require.False(t, meet, at)
		second, err := replica().certificate(t.Context())
		require.NoError(t, err)
		require.Equal(t, first.Certificate, second.Certificate)
	}
}

// shake does a handshake as the API server does it.
func shake(now time.Time, cert tls.Certificate, ca []byte, host string) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	go func() {
		if c, err := listener.Accept(); err == nil {
			_ = c.(*tls.Conn).Handshake()
			_ = c.Close()
		}
	}()
	c, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: host, Time: func() time.Time { return now }, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	return c.Close()
}
