package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/examples/internal/webhooks"
	llmwebhook "github.com/inferscale/inferscale/examples/llmautoscaler/webhook"
)

// certCheck is how often the webhook's certificate is looked at, and the configuration that API servers trust it by.
const certCheck = time.Minute

// webhookServer returns the server of the webhook, with the certificate from a directory or one of its own.
func (o *options) webhookServer(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, logger *slog.Logger) (webhook.Server, error) {
	served := webhooks.Config{Host: o.WebhookHost, Port: o.WebhookPort, CertDir: o.webhookCerts, Grace: o.Shutdown}
	if o.webhookCerts == "" {
		namespace := os.Getenv("POD_NAMESPACE")
		if namespace == "" {
			return nil, errNoNamespace
		}
		direct, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			return nil, err
		}
		k := &keeper{
			client: direct, namespace: namespace, secret: o.webhookSecret, service: o.webhookService, config: o.webhookConfig,
			logger: logger, now: time.Now,
		}
		current, err := k.keep(ctx)
		if err != nil {
			return nil, err
		}
		served.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current.Load(), nil }
	}
	return webhooks.NewServer(served), nil
}

// keep returns the certificate, which it looks after until ctx ends.
func (k *keeper) keep(ctx context.Context) (*atomic.Pointer[tls.Certificate], error) {
	first, err := k.certificate(ctx)
	if err != nil {
		return nil, err
	}
	current := &atomic.Pointer[tls.Certificate]{}
	current.Store(&first)
	go func() {
		tick := time.NewTicker(certCheck)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if next, err := k.certificate(ctx); err == nil {
				current.Store(&next)
			} else if ctx.Err() == nil {
				k.logger.Error("webhook certificate", "error", err)
			}
		}
	}()
	return current, nil
}

// webhooks adds the webhook of LLMAutoScalers.
func (o *options) webhooks(mgr manager.Manager) error {
	return builder.WebhookManagedBy(mgr, &stored.LLMAutoScaler{}).
		WithValidator(&llmwebhook.Validator{Reader: mgr.GetClient(), Others: mgr.GetAPIReader(), Namespaces: o.watched()}).
		Complete()
}
