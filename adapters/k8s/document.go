package k8s

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// swaps is the maximum number of attempts of a Save: another is made if something else in the object changed.
const swaps = 5

// A document is an object that has states in one of its parts: in the data of a ConfigMap, or in the annotations of any
// object.
type document struct {
	where string // for messages
	limit int    // maximum bytes of all keys and values together
	key   func(key string) string
	get   func(ctx context.Context) (page, error)
	// put writes values, and removes keys whose value is nil, on condition that the object still has the page's version.
	put func(ctx context.Context, p page, values map[string]*string) (page, error)

	mu    sync.Mutex
	known *page // as last read or written
}

// A page is a document at one resource version. The zero value is a document that does not exist.
type page struct {
	exists  bool
	version string
	values  map[string]string
}

func (p page) size() int {
	n := 0
	for k, v := range p.values {
		n += len(k) + len(v)
	}
	return n
}

// Load returns the state stored under key, or nothing if the object does not exist or the key is absent or empty.
func (d *document) Load(ctx context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	if v := p.values[d.key(key)]; v != "" {
		return []byte(v), nil
	}
	return nil, nil
}

func (d *document) read(ctx context.Context) (page, error) {
	d.known = nil
	p, err := d.get(ctx)
	if err != nil {
		return page{}, fmt.Errorf("%s: %w", d.where, err)
	}
	d.known = &p
	return p, nil
}

// Save replaces old with state, see Store. If the state does not fit, the error is a *SizeError.
func (d *document) Save(ctx context.Context, key string, old, state []byte) error {
	return d.swap(ctx, key, old, state, nil)
}

// swap replaces old with state. Another version of the object is not a conflict by itself, because other parts of an object
// change often; another state under the key is. So after a conflict swap reads the object, compares the state again and
// retries; every write is conditional on the version that was compared. swap also removes the other states for which drop
// returns true; a nil drop keeps all.
func (d *document) swap(ctx context.Context, key string, old, state []byte, drop func(key string, state []byte) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key = d.key(key)
	value := string(state)
	var err error
	for range swaps {
		var p page
		if d.known != nil && d.known.values[key] == string(old) {
			p = *d.known
		} else if p, err = d.read(ctx); err != nil {
			return err
		}
		d.known = nil
		if p.values[key] != string(old) {
			return fmt.Errorf("%s: %w", d.where, ErrStateConflict)
		}
		values, size := map[string]*string{key: &value}, p.size()-len(old)+len(state)
		if _, there := p.values[key]; !there {
			size += len(key)
		}
		for k, v := range p.values {
			if drop != nil && k != key && drop(k, []byte(v)) {
				values[k] = nil
				size -= len(k) + len(v)
			}
		}
		if size > d.limit {
			return &SizeError{Where: d.where, Size: size, Limit: d.limit}
		}
		var written page
		if written, err = d.put(ctx, p, values); err == nil {
			d.known = &written
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return fmt.Errorf("%s: %w", d.where, err)
}
