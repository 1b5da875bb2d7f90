package command

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	calmFor  = time.Minute
	messages = 1000 // that are remembered
)

// Calm returns a handler that passes one warning of each message a minute, so that an outage is a line a minute, and not
// some for each object and round. It says how many were like it since the one before; what each object lacks is in its
// conditions and its metrics. An error of which the cause is [context.Canceled] passes as information: a program that ends
// while it renews its lease is not at fault. Other records pass as they are.
func Calm(h slog.Handler) slog.Handler {
	return &calm{h, &said{of: make(map[string]*line)}}
}

type calm struct {
	slog.Handler

	said *said
}

// A said is what handlers with other attributes have in common.
type said struct {
	mu sync.Mutex
	of map[string]*line // by message
}

type line struct {
	at   time.Time
	more int // since
}

// Handle passes a record, or counts it.
func (c *calm) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError && canceled(r) {
		r.Level = slog.LevelInfo
		if !c.Enabled(ctx, r.Level) {
			return nil
		}
	}
	if r.Level == slog.LevelWarn {
		more, pass := c.said.pass(r.Message, r.Time)
		if !pass {
			return nil
		}
		if more > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("more", more))
		}
	}
	return c.Handler.Handle(ctx, r)
}

// canceled reports whether a record has an error that canceling caused.
func canceled(r slog.Record) (is bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		is = ok && errors.Is(err, context.Canceled)
		return !is
	})
	return is
}

// pass reports whether to pass a message, and how many were not since the last.
func (s *said) pass(message string, at time.Time) (more int, pass bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of[message]
	if l != nil {
		if age := at.Sub(l.at); age >= 0 && age < calmFor {
			l.more++
			return 0, false
		}
		more = l.more
	} else if len(s.of) >= messages {
		clear(s.of)
	}
	s.of[message] = &line{at: at}
	return more, true
}

// WithAttrs returns a handler that counts with this one.
func (c *calm) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &calm{c.Handler.WithAttrs(attrs), c.said}
}

// WithGroup returns a handler that counts with this one.
func (c *calm) WithGroup(name string) slog.Handler { return &calm{c.Handler.WithGroup(name), c.said} }
