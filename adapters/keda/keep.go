package keda

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// config tells what decides apart: metadata and bounds.
func (p *pilot) config() string {
	data, err := json.Marshal([]any{p.meta, p.target, p.plan.Bounds})
	if err != nil {
		return "" // matches itself, and is not reached: everything in it can be marshalled
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// load takes over what is stored, where it is not what this pilot stored.
func (p *pilot) load(ctx context.Context) error {
	if p.store == nil {
		return nil
	}
	data, err := p.store.Load(ctx, p.stateKey())
	if err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	if p.loaded && bytes.Equal(data, p.stored) {
		return nil
	}
	p.loaded = false
	r, err := parseRecord(data)
	if err != nil {
		return err
	}
	state := []byte(r.Policy)
	if len(data) == 0 {
		state = p.fresh
	}
	if err := p.plan.Policy.UnmarshalJSON(state); err != nil {
		return err
	}
	p.last, p.stored, p.loaded = r, data, true
	return nil
}

// save stores what a round came to. Where somebody else has stored something meanwhile, the round came to nothing, and
// the next looks at that.
func (p *pilot) save(ctx context.Context, r record) error {
	state, err := p.plan.Policy.MarshalJSON()
	if err != nil {
		return fmt.Errorf("state of the policy: %w", err)
	}
	r.Policy = state
	if p.store == nil {
		p.last = r
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("state of the policy: %w", err)
	}
	if err := p.store.Save(ctx, p.stateKey(), p.stored, data); err != nil {
		p.loaded = false
		return fmt.Errorf("store state: %w", err)
	}
	p.last, p.stored = r, data
	return nil
}

// stateKey is the key of the state: what is known of other algorithms or other metrics is of no use.
func (p *pilot) stateKey() string { return p.meta.identity() }
