package certs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/inferscale/inferscale/scaling"
)

const (
	// DefaultSecret is the Secret that KEDA and the server read.
	DefaultSecret = "keda-kaito-scaler-certs"

	resync    = time.Hour   // the longest that Ensure lets its caller wait
	retry     = time.Minute // what Ensure lets its caller wait after an error
	roundTime = time.Minute // what a round of Ensure may take
	conflicts = 3           // how often Ensure begins again
)

// KeeperConfig says which Secrets are kept and how. Client, Namespace and Rules must be set; every other zero field
// means its default.
type KeeperConfig struct {
	Client corev1client.SecretsGetter // as in clientset.CoreV1()
	Rules  Rules
	// Namespace is that of the Secret that KEDA reads: KEDA's own, for a ClusterTriggerAuthentication.
	Namespace string
	// Name is that of the Secret that KEDA and the server read, DefaultSecret by default.
	Name string
	// CANamespace is that of the Secret with the CA's private key, Namespace by default. Nobody but this program has to
	// read it.
	CANamespace string
	// CAName is that of the Secret with the CA's private key, by default Name with "-ca" at its end, in place of
	// "-certs" if Name has that.
	CAName string
	// OnAction is told what was done, once it is stored; nil means nobody. It must not block.
	OnAction func(Action)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Time asks another clock, as that of the API server. It is asked before anything is made or dropped: where Now differs
	// from it by more than 5 min (a twentieth of LeafLife if that is less) nothing is done, and Ensure's error is an
	// ErrClock. Nil means that Now is believed.
	Time func(context.Context) (time.Time, error)
	// Entropy is where serial numbers, keys and signatures come from; nil means crypto/rand. Go 1.26 takes no notice of
	// it for keys and signatures.
	Entropy io.Reader
}

// A Keeper keeps the certificates in two Secrets: makes them, renews them and rotates the CA. It has no state of its
// own: whatever it knows is in the Secrets. It is safe for concurrent use, and two of them do no harm to each other;
// leader election spares the conflicts.
type Keeper struct {
	KeeperConfig
	material, authority codec
}

// NewKeeper returns a Keeper, or every rule that the configuration breaks.
func NewKeeper(c KeeperConfig) (*Keeper, error) {
	c.Name = cmp.Or(c.Name, DefaultSecret)
	c.CAName = cmp.Or(c.CAName, strings.TrimSuffix(c.Name, "-certs")+"-ca")
	c.CANamespace = cmp.Or(c.CANamespace, c.Namespace)
	if c.OnAction == nil {
		c.OnAction = func(Action) {}
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the documented default of KeeperConfig.Now
	}
	if c.Entropy == nil {
		c.Entropy = rand.Reader
	}
	var e scaling.FieldErrors
	e.Check(c.Client != nil, "client", nil, "must be set")
	e.Check(c.Namespace != "", "namespace", c.Namespace, "must not be empty")
	e.Check(c.CAName != c.Name || c.CANamespace != c.Namespace, "caName", c.CAName, "must not be the Secret that KEDA reads")
	e.Add(c.Rules.Validate())
	if err := e.Err(); err != nil {
		return nil, err
	}
	return &Keeper{
		KeeperConfig: c,
		material:     codec{where: "Secret " + c.Namespace + "/" + c.Name, role: roleMaterial},
		authority:    codec{where: "Secret " + c.CANamespace + "/" + c.CAName, role: roleAuthority},
	}, nil
}

// Ensure makes the Secrets what they have to be now, and returns when to call it again: when something is due, an hour
// from now at the latest, a minute from now after an error. It may be called at any time, as when one of the Secrets has
// changed, and writes nothing unless something is due.
//
// What somebody else has written meanwhile is read again, up to three times. A Secret with content that is not ours, or
// that is damaged, is left alone, and so is the other: the error is a *SecretError.
func (k *Keeper) Ensure(ctx context.Context) (time.Time, error) {
	var err error
	for range 1 + conflicts {
		var next time.Time
		if next, err = k.round(ctx); err == nil {
			return next, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return k.Now().Add(retry), err
}

// round reads the material before the authority, and writes it after. So whoever gets to replace a material knew an
// authority that is not older than the one which that was made of.
func (k *Keeper) round(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	secret, err := k.get(ctx, k.Namespace, k.Name)
	if err != nil {
		return time.Time{}, err
	}
	ca, err := k.get(ctx, k.CANamespace, k.CAName)
	if err != nil {
		return time.Time{}, err
	}
	var s State
	if s.Material, err = k.material.material(secret); err != nil {
		return time.Time{}, err
	}
	if s.Authority, err = k.authority.authority(ca); err != nil {
		return time.Time{}, err
	}
	request := ""
	if ca != nil {
		request = ca.Annotations[RotateAnnotation]
	}
	now := k.Now()
	step, err := Next(k.Rules, s, request, now, k.Entropy)
	if err != nil {
		return time.Time{}, k.named(err)
	}
	if len(step.Actions) > 0 {
		if err := k.check(ctx); err != nil {
			return time.Time{}, err
		}
	}
	if err := k.write(ctx, k.CANamespace, k.CAName, ca, func(s *corev1.Secret) error {
		return k.authority.putAuthority(s, step.State.Authority)
	}); err != nil {
		return time.Time{}, err
	}
	if err := k.write(ctx, k.Namespace, k.Name, secret, func(s *corev1.Secret) error {
		k.material.putMaterial(s, step.State.Material)
		return nil
	}); err != nil {
		return time.Time{}, err
	}
	for _, a := range step.Actions {
		k.OnAction(a)
	}
	return earlier(step.Next, now.Add(resync)), nil
}

// named says by which Secret an error of Next is meant.
func (k *Keeper) named(err error) error {
	var part *SecretError
	if !errors.As(err, &part) {
		return err
	}
	named := *part
	named.Secret = k.material.where
	if part.Secret == whereAuthority {
		named.Secret = k.authority.where
	}
	return &named
}

// check compares the clock with another: certificates made by a clock that is ahead are of no use to anybody, and what it
// takes for expired is not.
func (k *Keeper) check(ctx context.Context) error {
	if k.Time == nil {
		return nil
	}
	other, err := k.Time(ctx)
	if err != nil {
		return fmt.Errorf("cannot compare the clock: %w", err)
	}
	now, slack := k.Now(), k.Rules.orDefault().slack()
	if off := now.Sub(other).Abs(); off > slack {
		return fmt.Errorf("the clock says %s, and the other one %s: they must differ by at most %s: %w", stamp(now), stamp(other), slack, ErrClock)
	}
	return nil
}

// get returns nil for a Secret that does not exist.
func (k *Keeper) get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	s, err := k.Client.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read Secret %s/%s: %w", namespace, name, err)
	}
	return s, nil
}

// write replaces old by what put makes of it, unless that is the same.
func (k *Keeper) write(ctx context.Context, namespace, name string, old *corev1.Secret, put func(*corev1.Secret) error) error {
	doing := "update"
	s := old.DeepCopy()
	if s == nil {
		doing = "create"
		s = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS}
	}
	if err := put(s); err != nil {
		return err
	}
	var err error
	switch {
	case old == nil:
		_, err = k.Client.Secrets(namespace).Create(ctx, s, metav1.CreateOptions{})
	case !equality.Semantic.DeepEqual(old, s):
		_, err = k.Client.Secrets(namespace).Update(ctx, s, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("cannot %s Secret %s/%s: %w", doing, namespace, name, err)
	}
	return nil
}

// RotateCA asks for a rotation of the CA, as the annotation RotateAnnotation on its Secret does; request is a text that
// was not used before, such as the date. The next Ensure begins it; during the phase Switch it waits for the phase to
// end. There must be a CA.
func (k *Keeper) RotateCA(ctx context.Context, request string) error {
	var e scaling.FieldErrors
	e.Check(request != "", "request", request, "must not be empty")
	if err := e.Err(); err != nil {
		return err
	}
	s, err := k.get(ctx, k.CANamespace, k.CAName)
	if err != nil {
		return err
	}
	if a, err := k.authority.authority(s); err != nil {
		return err
	} else if a.empty() {
		return &SecretError{Secret: k.authority.where, Rule: mustNotBeEmpty, Err: ErrMissing}
	}
	return k.write(ctx, k.CANamespace, k.CAName, s, func(s *corev1.Secret) error {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, RotateAnnotation, request)
		return nil
	})
}
