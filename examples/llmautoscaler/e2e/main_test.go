package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// TestMain keeps controller-runtime, which installs the definitions, from saying that nobody gave it a logger. In a process of its own it is the
// hostile pods of TestHostileTenants.
func TestMain(m *testing.M) {
	if os.Getenv(hostileVariable) != "" {
		if err := hostilePods(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
