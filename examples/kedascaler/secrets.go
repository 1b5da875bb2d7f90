package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/inferscale/inferscale/adapters/certs"
	"github.com/inferscale/inferscale/examples/internal/command"
)

// certCheck is how often Secrets, authentication and webhook are looked at.
const certCheck = 15 * time.Second

// credentials sets up what the server reads its certificates from, and has them kept unless somebody else does.
func (p *process) credentials(ctx context.Context) error {
	var source certs.Source
	switch {
	case p.plaintext:
		return nil
	case p.certDir != "":
		source = &certs.Files{Dir: p.certDir}
	default:
		namespace := p.secretNamespace()
		factory := informers.NewSharedInformerFactoryWithOptions(p.kube, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermEqualSelector("metadata.name", p.secret).String()
			}))
		lister := factory.Core().V1().Secrets().Lister().Secrets(namespace)
		factory.StartWithContext(ctx)
		p.watches.Go(func() {
			<-ctx.Done()
			factory.Shutdown()
		})
		for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return fmt.Errorf("watch Secret %s/%s: %w", namespace, p.secret, ctx.Err())
			}
		}
		secret := &certs.SecretSource{Lister: lister, Namespace: namespace, Name: p.secret}
		if p.unmanaged {
			secret.Keys = certs.Keys{Cert: "tls.crt", Key: "tls.key"} // as cert-manager writes them
		}
		source = secret
	}
	p.reader = certs.NewReader(certs.ReaderConfig{Source: source, OnError: func(err error) {
		p.logger.Warn("certificates", "error", err)
	}})
	return nil
}

func (o *options) secretNamespace() string { return cmp.Or(o.secretsIn, o.namespace) }

// rules say what is certified.
func (o *options) rules() certs.Rules {
	r := certs.Rules{DNSNames: certs.ServiceNames(o.service, cmp.Or(o.namespace, "default"), o.domain), LeafLife: o.leafLife, Overlap: o.overlap, DropAfter: o.dropAfter}
	for _, name := range command.List(o.names) {
		if ip := net.ParseIP(name); ip != nil {
			r.IPs = append(r.IPs, ip)
		} else {
			r.DNSNames = append(r.DNSNames, name)
		}
	}
	return r
}

// newKeeper makes what keeps the certificates, unless somebody else sees to them.
func (p *process) newKeeper() (err error) {
	if p.plaintext || p.unmanaged || p.certDir != "" {
		return nil
	}
	p.keeper, err = certs.NewKeeper(certs.KeeperConfig{
		Client: p.kube.CoreV1(), Rules: p.rules(),
		Namespace: p.secretNamespace(), Name: p.secret, CANamespace: p.namespace, CAName: p.caSecret,
		Time: func(ctx context.Context) (time.Time, error) {
			return serverTime(ctx, p.manager.GetConfig(), p.manager.GetHTTPClient())
		},
		OnAction: func(a certs.Action) { p.logger.Info("certificates", "action", a.String()) },
	})
	return err
}

// serverTime returns what time it is for the API server: each of its answers says.
func serverTime(ctx context.Context, config *rest.Config, client *http.Client) (time.Time, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return time.Time{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	if err := resp.Body.Close(); err != nil {
		return time.Time{}, err
	}
	return http.ParseTime(resp.Header.Get("Date"))
}

// keep keeps the certificates, the ClusterTriggerAuthentication that refers to them, and the CA in the webhook's configuration
// until ctx ends. Only the leader does.
func (p *process) keep(ctx context.Context) {
	for {
		next := time.Now().Add(certCheck)
		due, err := p.keeper.Ensure(ctx)
		if err == nil {
			err = errors.Join(p.authenticate(ctx), p.trust(ctx))
		}
		if due.Before(next) && !due.IsZero() {
			next = due
		}
		if err != nil && ctx.Err() == nil {
			p.logger.Error("certificates", "error", err)
		}
		timer := time.NewTimer(max(time.Until(next), time.Second))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (p *process) authenticate(ctx context.Context) error {
	changed, err := certs.KeepAuthentication(ctx, p.dynamic, p.creds, p.secret)
	if changed {
		p.logger.Info("ClusterTriggerAuthentication applied", "name", p.creds)
	}
	return err
}

// trust puts the CAs into the webhook's configuration. Without a configuration there is nothing to do.
func (p *process) trust(ctx context.Context) error {
	if !p.webhook {
		return nil
	}
	secret, err := p.kube.CoreV1().Secrets(p.secretNamespace()).Get(ctx, p.secret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	hooks := p.kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	config, err := hooks.Get(ctx, p.webhookConfig, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("webhook configuration: %w", err)
	}
	patch := []map[string]any{{"op": "test", "path": "/metadata/resourceVersion", "value": config.ResourceVersion}}
	for i, w := range config.Webhooks {
		if !bytes.Equal(w.ClientConfig.CABundle, secret.Data["ca.crt"]) {
			patch = append(patch, map[string]any{"op": "add", "path": fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), "value": secret.Data["ca.crt"]})
		}
	}
	if len(patch) == 1 {
		return nil
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if _, err := hooks.Patch(ctx, p.webhookConfig, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: "kedascaler"}); err != nil {
		return fmt.Errorf("webhook configuration: %w", err) // somebody else may have changed it meanwhile: it is read again soon
	}
	p.logger.Info("CA put into the webhook's configuration", "name", p.webhookConfig)
	return nil
}
