package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// auditLog is the file of the audit log.
const auditLog = "audit.log"

// auditPolicy is what the audit log has: all writes with their bodies, except events, leases, and what may be secret or
// comes from the fake kubelet; of those, leases and pods without bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    verbs: [get, list, watch]
  - level: None
    resources:
      - group: ""
        resources: [events]
      - group: events.k8s.io
  - level: Metadata
    resources:
      - group: ""
        resources: [pods, pods/*, secrets, serviceaccounts/token]
      - group: coordination.k8s.io
      - group: authentication.k8s.io
      - group: authorization.k8s.io
  - level: Request
`

// A Write is a finished request of the audit log that was to change something.
type Write struct {
	Time        time.Time
	User        string
	UserAgent   string
	Verb        string // create, update, patch, delete or deletecollection
	Group       string
	Resource    string // plural
	Subresource string // empty: the object itself
	Namespace   string
	Name        string
	Code        int             // the HTTP status of the answer
	Body        json.RawMessage // of the request, where the policy asks for it
}

// auditEvent is what this package reads of an entry of the audit log.
type auditEvent struct {
	Stage                  string
	Verb                   string
	UserAgent              string
	StageTimestamp         time.Time
	RequestObject          json.RawMessage
	User, ImpersonatedUser struct{ Username string }
	ResponseStatus         struct{ Code int }
	ObjectRef              struct {
		Resource, Subresource, Namespace, Name, APIGroup string
	}
}

// Writes returns the writes of a user to a resource, oldest first, refused ones too. An empty user or resource means
// any; an empty subresource means the object itself, and "*" any. An entry may come a moment after its answer.
func (c *Cluster) Writes(user, resource, subresource string) ([]Write, error) {
	text, err := os.ReadFile(c.path(auditLog))
	if err != nil {
		return nil, err
	}
	var writes []Write
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		w := e.write()
		switch {
		case e.Stage != "ResponseComplete" && e.Stage != "Panic":
		case !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, w.Verb):
		case user != "" && user != w.User, resource != "" && resource != w.Resource:
		case subresource != "*" && subresource != w.Subresource:
		default:
			writes = append(writes, w)
		}
	}
	return writes, nil
}

// write is the entry as this package shows it.
func (e auditEvent) write() Write {
	w := Write{
		Time: e.StageTimestamp, User: e.User.Username, UserAgent: e.UserAgent, Verb: e.Verb,
		Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code, Body: e.RequestObject,
	}
	if e.ImpersonatedUser.Username != "" {
		w.User = e.ImpersonatedUser.Username
	}
	return w
}
