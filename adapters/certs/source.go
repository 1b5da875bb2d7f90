package certs

import (
	"cmp"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Served has the certificates and the key of a server, in PEM.
type Served struct {
	// Where is the origin: "Secret namespace/name", "folder certs".
	Where string
	// Version differs if anything else differs. Content with the same version as before is not parsed again; content without a
	// version is parsed at every handshake.
	Version string
	// CA has the certificates of all CAs whose clients are accepted.
	CA []byte
	// Pair is the server's own pair. The certificates that lead to the CA may follow its certificate.
	Pair Pair
	// Keys are the names of the three parts, for errors.
	Keys Keys
}

// A Source gives a server its certificates. Load is called at every handshake, by several goroutines at once, and must be
// cheap. Its result must not be changed afterwards.
type Source interface {
	Load() (Served, error)
}

// Keys are the names of a Secret's keys, or of a folder's files, from which a server reads its certificates. A zero field
// means its default. A Secret of cert-manager has tls.crt and tls.key for Cert and Key.
type Keys struct {
	CA   string // "ca.crt" by default
	Cert string // "server.crt" by default
	Key  string // "server.key" by default
}

func (k Keys) orDefault() Keys {
	return Keys{CA: cmp.Or(k.CA, keyCA), Cert: cmp.Or(k.Cert, keyServerCert), Key: cmp.Or(k.Key, keyServerKey)}
}

// A SecretSource reads a Secret from the cache of an informer. It only reads: the Secret may be maintained by a Keeper, by
// cert-manager or by hand. The caller must start and sync the informer, which should watch only this Secret (with a field
// selector on metadata.name).
type SecretSource struct {
	Lister    corelisters.SecretNamespaceLister // for example factory.Core().V1().Secrets().Lister().Secrets(namespace)
	Namespace string                            // for errors
	Name      string
	Keys      Keys
}

// Load returns the Secret in the cache. A missing Secret is an ErrMissing.
func (s SecretSource) Load() (Served, error) {
	where := "Secret " + s.Namespace + "/" + s.Name
	secret, err := s.Lister.Get(s.Name)
	if apierrors.IsNotFound(err) {
		return Served{}, &SecretError{Secret: where, Rule: "must exist", Err: ErrMissing}
	}
	if err != nil {
		return Served{}, fmt.Errorf("cannot read %s: %w", where, err)
	}
	keys, version := s.Keys.orDefault(), ""
	if secret.ResourceVersion != "" { // fakes give none
		version = string(secret.UID) + "/" + secret.ResourceVersion
	}
	return Served{
		Where:   where,
		Version: version,
		CA:      secret.Data[keys.CA],
		Pair:    Pair{Cert: secret.Data[keys.Cert], Key: secret.Data[keys.Key]},
		Keys:    keys,
	}, nil
}
