package certs

import (
	"cmp"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Served is what a server needs, in PEM.
type Served struct {
	// Where it comes from: "Secret namespace/name", "folder certs".
	Where string
	// Version differs where anything else differs. What has the version of before is not parsed again; what has none is
	// parsed at every handshake.
	Version string
	// CA has the certificates of every CA whose clients are let in.
	CA []byte
	// Pair is the server's own. Its certificate may be followed by those that lead to the CA.
	Pair Pair
	// Keys are the names of the three, for errors.
	Keys Keys
}

// A Source gives a server its certificates. Load is called at every handshake, from several goroutines at once, and has
// to be cheap. What it returns must not be changed afterwards.
type Source interface {
	Load() (Served, error)
}

// Keys are the names, of a Secret's keys or a folder's files, under which a server finds what it needs. A zero field
// means its default. A Secret of cert-manager has tls.crt and tls.key for Cert and Key.
type Keys struct {
	CA   string // "ca.crt" by default
	Cert string // "server.crt" by default
	Key  string // "server.key" by default
}

func (k Keys) orDefault() Keys {
	return Keys{CA: cmp.Or(k.CA, keyCA), Cert: cmp.Or(k.Cert, keyServerCert), Key: cmp.Or(k.Key, keyServerKey)}
}

// A SecretSource reads a Secret through the cache of an informer. It only reads: the Secret may be kept by a Keeper, by
// cert-manager or by hand. The informer has to be started and synced by the caller, and is best one of this Secret
// alone (a field selector on metadata.name).
type SecretSource struct {
	Lister    corelisters.SecretNamespaceLister // as in factory.Core().V1().Secrets().Lister().Secrets(namespace)
	Namespace string                            // for errors
	Name      string
	Keys      Keys
}

// Load returns what the cache has. A Secret that is not there is an ErrMissing.
func (s SecretSource) Load() (Served, error) {
	where := "Secret " + s.Namespace + "/" + s.Name
	secret, err := s.Lister.Get(s.Name)
	if apierrors.IsNotFound(err) {
		return Served{}, &SecretError{Secret: where, Rule: "must exist", Err: ErrMissing}
	}
	if err != nil {
		return Served{}, fmt.Errorf("cannot read %s: %w", where, err)
	}
	keys := s.Keys.orDefault()
	return Served{
		Where:   where,
		Version: string(secret.UID) + "/" + secret.ResourceVersion,
		CA:      secret.Data[keys.CA],
		Pair:    Pair{Cert: secret.Data[keys.Cert], Key: secret.Data[keys.Key]},
		Keys:    keys,
	}, nil
}
