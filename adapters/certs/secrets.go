package certs

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The keys of the Secrets' data.
const (
	keyCA         = "ca.crt"
	keyTLSCert    = corev1.TLSCertKey
	keyTLSKey     = corev1.TLSPrivateKeyKey
	keyServerCert = "server.crt"
	keyServerKey  = "server.key"
	keyNextCert   = "next.crt"
	keyNextKey    = "next.key"
	keyOldCert    = "old.crt"
	keyState      = "state"
)

const (
	// Label is on every Secret that a Keeper maintains; its value is the role of the Secret. A Secret without it that is not
	// empty is not changed.
	Label         = "autoscaling.inferscale.io/certs"
	roleAuthority = "authority"
	roleMaterial  = "material"
	// RotateAnnotation on the Secret of the CA requests a rotation: set it to a text that it has not had before, such as the
	// date.
	RotateAnnotation = "autoscaling.inferscale.io/rotate-ca"
	// SinceAnnotation on the Secret that clients read is the time since which ca.crt and the CA that signs have not changed.
	// The rotation counts from this time; if the annotation is missing, the rotation counts from now.
	SinceAnnotation = "autoscaling.inferscale.io/trusted-since"

	stateVersion = 1
)

// memory is the state of the rotation, stored under keyState.
type memory struct {
	Version  int        `json:"version"`
	Phase    Phase      `json:"phase"`
	OldUntil *time.Time `json:"oldUntil,omitempty"`
	Request  string     `json:"request,omitempty"`
}

// A codec reads and writes one kind of Secret.
type codec struct {
	where string // "Secret namespace/name"
	role  string
}

// owned reports whether a Secret has content that a Keeper has written. It returns an error if the Secret has other content.
func (c codec) owned(s *corev1.Secret) (bool, error) {
	foreign := func(key, rule string) error {
		return &SecretError{Secret: c.where, Key: key, Rule: rule, Err: ErrForeign}
	}
	switch s.Type {
	case "", corev1.SecretTypeOpaque, corev1.SecretTypeTLS:
	default:
		return false, foreign("type", "must be kubernetes.io/tls or Opaque")
	}
	role, labelled := s.Labels[Label]
	if labelled && role != c.role {
		return false, foreign("label "+Label, "must be "+c.role)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		if len(s.Data[key]) == 0 {
			continue
		}
		if !labelled {
			return false, foreign(key, "must be empty in a Secret without the label "+Label)
		}
		return true, nil
	}
	return false, nil
}

// authority reads the CA. A missing or empty Secret has none.
func (c codec) authority(s *corev1.Secret) (Authority, error) {
	if s == nil {
		return Authority{}, nil
	}
	if ours, err := c.owned(s); !ours {
		return Authority{}, err
	}
	a := Authority{
		CA:   Pair{Cert: s.Data[keyTLSCert], Key: s.Data[keyTLSKey]},
		Next: Pair{Cert: s.Data[keyNextCert], Key: s.Data[keyNextKey]},
		Old:  s.Data[keyOldCert],
	}
	p := parser{where: c.where}
	var m memory
	d := json.NewDecoder(bytes.NewReader(s.Data[keyState]))
	d.DisallowUnknownFields()
	switch err := d.Decode(&m); {
	case len(s.Data[keyState]) == 0:
		p.fault(keyState, mustNotBeEmpty)
	case err != nil || d.More():
		p.fault(keyState, "must be one object in JSON as this program writes it")
	case m.Version != stateVersion:
		p.fault(keyState, "version must be 1, the one that this program knows")
	case m.Phase == PhaseSwitch && m.OldUntil == nil:
		p.fault(keyState, "oldUntil must be given in the phase Switch")
	}
	if p.err != nil {
		return Authority{}, p.fail()
	}
	a.Phase, a.Request = m.Phase, m.Request
	if m.OldUntil != nil {
		a.OldUntil = m.OldUntil.UTC()
	}
	_, err := parseAuthority(c.where, a)
	return a, err
}

// putAuthority writes the CA into s.
func (c codec) putAuthority(s *corev1.Secret, a Authority) error {
	m := memory{Version: stateVersion, Phase: a.Phase, Request: a.Request}
	if !a.OldUntil.IsZero() {
		m.OldUntil = &a.OldUntil
	}
	state, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.put(s, map[string][]byte{
		keyTLSCert: a.CA.Cert, keyTLSKey: a.CA.Key,
		keyNextCert: a.Next.Cert, keyNextKey: a.Next.Key,
		keyOldCert: a.Old, keyState: state,
	})
	return nil
}

// material reads the certificates of client and server. A missing or empty Secret has none.
func (c codec) material(s *corev1.Secret) (Material, error) {
	if s == nil {
		return Material{}, nil
	}
	if ours, err := c.owned(s); !ours {
		return Material{}, err
	}
	m := Material{
		Bundle: s.Data[keyCA],
		Client: Pair{Cert: s.Data[keyTLSCert], Key: s.Data[keyTLSKey]},
		Server: Pair{Cert: s.Data[keyServerCert], Key: s.Data[keyServerKey]},
	}
	if since := s.Annotations[SinceAnnotation]; since != "" {
		t, err := time.Parse(time.RFC3339, since)
		if err != nil {
			return Material{}, &SecretError{Secret: c.where, Key: "annotation " + SinceAnnotation, Rule: "must be a time as in RFC 3339, or absent", Err: ErrDamaged}
		}
		m.Since = t.UTC()
	}
	_, err := parseMaterial(c.where, m)
	return m, err
}

// putMaterial writes the certificates of client and server into s.
func (c codec) putMaterial(s *corev1.Secret, m Material) {
	c.put(s, map[string][]byte{
		keyCA: m.Bundle, keyTLSCert: m.Client.Cert, keyTLSKey: m.Client.Key,
		keyServerCert: m.Server.Cert, keyServerKey: m.Server.Key,
	})
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, SinceAnnotation, stamp(m.Since))
}

// put sets keys, and removes those without a value, except for the two that the Secret's type requires.
func (c codec) put(s *corev1.Secret, data map[string][]byte) {
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[Label] = c.role
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, value := range data {
		if len(value) == 0 && key != keyTLSCert && key != keyTLSKey {
			delete(s.Data, key)
		} else {
			s.Data[key] = value
		}
	}
}
