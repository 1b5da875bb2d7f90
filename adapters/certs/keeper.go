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
	// DefaultSecret is the default name of the Secret that KEDA and the server read.
	DefaultSecret = "keda-kaito-scaler-certs"

	resync    = time.Hour   // the longest time until Ensure should be called again
	retry     = time.Minute // the time until Ensure should be called again after an error
	roundTime = time.Minute // time limit of a round of Ensure
	conflicts = 3           // how often Ensure begins again after a conflict
)

// KeeperConfig is the configuration of a Keeper. Client, Namespace and Rules must be set; every other zero field means its
// default.
type KeeperConfig struct {
	Client corev1client.SecretsGetter // for example clientset.CoreV1()
	Rules  Rules
	// Namespace is the namespace of the Secret that KEDA reads. For a ClusterTriggerAuthentication it is KEDA's own.
	Namespace string
	// Name is the name of the Secret that KEDA and the server read, DefaultSecret by default.
	Name string
	// CANamespace is the namespace of the Secret with the CA's private key, Namespace by default. Only this program needs to
	// read that Secret.
	CANamespace string
	// CAName is the name of the Secret with the CA's private key. The default is Name with the suffix "-ca", which replaces a
	// suffix "-certs".
	CAName string
	// OnAction is called for each action once it is stored; nil means no call. It must not block.
	OnAction func(Action)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Time reads a second clock, for example that of the API server. It is called before anything is made or dropped. If Now
	// differs from it by more than 5 min (or a twentieth of LeafLife if that is less), nothing is done, and Ensure's error is
	// an ErrClock. Nil means that Now is trusted.
	Time func(context.Context) (time.Time, error)
	// Entropy is the source of randomness for serial numbers, keys and signatures; nil means crypto/rand. Go 1.26 ignores it
	// for keys and signatures.
	Entropy io.Reader
}

// A Keeper maintains the certificates in two Secrets: it makes and renews them, and rotates the CA. Its whole state is in the
// Secrets. It is safe for concurrent use. Two Keepers cannot undo each other's work; leader election avoids their conflicts.
type Keeper struct {
	KeeperConfig
	material, authority codec
}

// NewKeeper returns a Keeper, or an error with every rule that the configuration breaks.
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

// Ensure brings the Secrets up to date, and returns when to call it again: when the next action is due, but at most an hour
// from now, or a minute from now after an error. It may be called at any time, for example when one of the Secrets has
// changed. It writes nothing unless an action is due.
//
// After a conflict with another writer Ensure reads the Secrets again, up to three times. If a Secret is damaged, or has
// content that a Keeper has not written, Ensure changes neither Secret, and the error is a *SecretError.
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

// round reads the material before the authority, and writes it after the authority. So a keeper that succeeds in replacing a
// material has read an authority that is not older than the one from which that material was made.
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

// named puts the name of the Secret into an error of Next.
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

// check compares the clock with the second clock. With a clock that is ahead, nobody would accept the certificates made, and
// valid certificates would be treated as expired.
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

// write replaces old with the result of put, unless nothing has changed.
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

// RotateCA requests a rotation of the CA: it sets the annotation RotateAnnotation on the Secret of the CA. request must be a
// text that was not used before, such as the date. The next Ensure begins the rotation; during the phase Switch it waits for
// the end of the phase. There must be a CA.
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
