package k8s

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A stubMapper knows the kinds that it saw at its last reset, counts what it is asked, and can be hung.
type stubMapper struct {
	meta.RESTMapper
	mu        sync.Mutex
	installed map[string]bool
	seen      map[string]bool
	err       error
	asked     map[string]int
	resets    int
	hang      chan struct{} // of the kind "Hung"
	hung      chan struct{} // has an entry for each time that somebody hangs
}

func newStubMapper(kinds ...string) *stubMapper {
	s := &stubMapper{installed: map[string]bool{}, asked: map[string]int{}, hang: make(chan struct{}), hung: make(chan struct{}, 100)}
	for _, k := range kinds {
		s.installed[k] = true
	}
	s.Reset()
	s.resets = 0
	return s
}

func (s *stubMapper) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resets++
	s.seen = map[string]bool{}
	for k := range s.installed {
		s.seen[k] = true
	}
}

func (s *stubMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Kind == "Hung" {
		s.hung <- struct{}{}
		<-s.hang
	}
	if kind.Kind == "Panic" {
		panic("a test")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[kind.Kind]++
	if s.err != nil {
		return nil, s.err
	}
	if !s.seen[kind.Kind] {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return &meta.RESTMapping{GroupVersionKind: kind.WithVersion("v1")}, nil
}

func (s *stubMapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.Resource]++
	if !s.seen[r.Resource] {
		return schema.GroupVersionResource{}, &meta.NoResourceMatchError{PartialResource: r}
	}
	r.Version = "v1"
	return r, nil
}

// withoutReset hides that a mapper can be reset.
type withoutReset struct{ meta.RESTMapper }

func ofKind(name string) schema.GroupKind { return schema.GroupKind{Group: "g", Kind: name} }

// Answers are remembered: that of a known kind for ever, a failure for 30 s.
func TestRemembering(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := newStubMapper("Known", "known")
	m := remember(withoutReset{s}, func() time.Time { return now })
	ask := func(kind string, versions ...string) error {
		got, err := m.RESTMapping(ofKind(kind), versions...)
		if err == nil {
			require.Equal(t, kind, got.GroupVersionKind.Kind)
		}
		return err
	}
	for range 3 {
		require.NoError(t, ask("Known", "v1"))
		require.True(t, meta.IsNoMatchError(ask("Later", "v1")))
		r, err := m.ResourceFor(schema.GroupVersionResource{Group: "g", Resource: "known"})
		require.NoError(t, err)
		require.Equal(t, "v1", r.Version)
		_, err = m.ResourceFor(schema.GroupVersionResource{Group: "g", Resource: "later"})
		require.True(t, meta.IsNoMatchError(err))
	}
	require.Equal(t, map[string]int{"Known": 1, "Later": 1, "known": 1, "later": 1}, s.asked)

	s.seen["Later"] = true
	now = now.Add(failureLife - 1)
	require.Error(t, ask("Later", "v1"))
	now = now.Add(1)
	require.NoError(t, ask("Later", "v1"))
	require.Equal(t, 2, s.asked["Later"])
	require.Empty(t, m.failed[question{kind: ofKind("Later"), versions: 1, version: "v1"}])

	// Another version, none and several are other questions.
	require.NoError(t, ask("Known", "v2"))
	require.NoError(t, ask("Known"))
	require.NoError(t, ask("Known", ""))
	require.Equal(t, 4, s.asked["Known"])
	for range 2 {
		require.NoError(t, ask("Known", "v1", "v2"))
	}
	require.Equal(t, 6, s.asked["Known"])

	// So is a failed discovery; what is known needs none.
	s.err = errors.New("no answer")
	for range 2 {
		require.ErrorIs(t, ask("New", "v1"), s.err)
		require.NoError(t, ask("Known", "v1"))
	}
	require.Equal(t, 1, s.asked["New"])
	m.Reset()
	require.ErrorIs(t, ask("Known", "v1"), s.err)

	require.Panics(t, func() { _ = ask("Panic", "v1") })
	require.ErrorIs(t, ask("Panic", "v1"), errPanicked)
}

// A mapper that can be reset is reset for kinds that were installed later, at most every 30 s for all together.
func TestRememberingResets(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := newStubMapper("Known")
	m := remember(s, func() time.Time { return now })
	ask := func(kind string) error {
		_, err := m.RESTMapping(ofKind(kind), "v1")
		return err
	}
	require.NoError(t, ask("Known"))
	require.Zero(t, s.resets)
	s.installed["First"] = true
	require.NoError(t, ask("First"), "installed before anybody asked for it")
	require.Equal(t, 1, s.resets)

	for i := range 50 {
		require.Error(t, ask(fmt.Sprint("Unknown", i)))
	}
	require.Error(t, ask("Second"))
	require.Equal(t, 1, s.resets)
	s.installed["Second"] = true
	require.Error(t, ask("Second"))
	now = now.Add(failureLife)
	require.NoError(t, ask("Second"))
	require.Equal(t, 2, s.resets)

	m.Reset()
	require.Equal(t, 3, s.resets)
	require.NoError(t, ask("Known"))
	require.Equal(t, 2, s.asked["Known"])
}

// The same question is asked once at a time, and nobody else waits for it.
func TestRememberingHung(t *testing.T) {
	s := newStubMapper("Known", "Other", "Hung")
	m := Remembering(s)
	_, err := m.RESTMapping(ofKind("Known"), "v1")
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 20 {
		all.Add(1)
		go func() {
			defer all.Done()
			got, err := m.RESTMapping(ofKind("Hung"), "v1")
			if err != nil || got.GroupVersionKind.Kind != "Hung" {
				t.Error(got, err)
			}
		}()
	}
	<-s.hung
	for _, kind := range []string{"Known", "Other"} {
		_, err = m.RESTMapping(ofKind(kind), "v1")
		require.NoError(t, err)
	}
	close(s.hang)
	all.Wait()
	require.Equal(t, 1, s.asked["Hung"])
}

// However many unknown kinds are asked for, the last 1,024 are remembered.
func TestRememberingIsBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := newStubMapper()
	m := remember(s, func() time.Time { return now })
	for i := range mostFailures + 10 {
		now = now.Add(time.Millisecond)
		_, err := m.RESTMapping(ofKind(fmt.Sprint(i)), "v1")
		require.Error(t, err)
	}
	require.Len(t, m.failed, mostFailures)
	require.Empty(t, m.asked)
	require.Empty(t, m.known)
	clear(s.asked)
	for _, i := range []int{9, 11, mostFailures + 9} { // the first of them takes the place of number 10
		_, err := m.RESTMapping(ofKind(fmt.Sprint(i)), "v1")
		require.Error(t, err)
	}
	require.Equal(t, map[string]int{"9": 1}, s.asked)
}
