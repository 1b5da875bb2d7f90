package cluster

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// User returns the configuration of a client that is the given user, by a certificate. RBAC says what it may do; the
// group system:masters may do everything.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	cert, key, err := c.clients.client(name, groups...)
	if err != nil {
		return nil, err
	}
	config := c.anonymous()
	config.CertData, config.KeyData = cert, key
	return config, nil
}

// ServiceAccount returns the configuration of a client that is an existing service account, by a token of one hour
// that the API server issued. RBAC says what it may do; the audit log has it as [ServiceAccountUser].
func (c *Cluster) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	hour := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of service account %s/%s: %w", namespace, name, err)
	}
	config := c.anonymous()
	config.BearerToken = token.Status.Token
	return config, nil
}

// ServiceAccountUser is the user name of a service account.
func ServiceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// anonymous is the configuration of a client without credentials, and without a rate limit of its own.
func (c *Cluster) anonymous() *rest.Config {
	return &rest.Config{
		Host:            "https://" + Address(c.apiPort),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.clients.pem},
		QPS:             -1,
	}
}

// WriteKubeconfig writes a configuration of this package to a file, for kubectl and for other programs.
func WriteKubeconfig(file string, config *rest.Config) error {
	const name = "inferscale"
	k := api.NewConfig()
	k.Clusters[name] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos[name] = &api.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
	}
	k.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name, Namespace: metav1.NamespaceDefault}
	k.CurrentContext = name
	return clientcmd.WriteToFile(*k, file)
}
