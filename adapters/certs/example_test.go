package certs_test

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/adapters/certs"
)

// A rotation that is asked for on the tenth of January: every time something is due, and what is done.
func ExampleNext() {
	rules := certs.Rules{DNSNames: certs.ServiceNames("keda-kaito-scaler", "keda", "")}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var state certs.State
	for _, request := range []string{"", "2026-01-10", "2026-01-10", "2026-01-10", "2026-01-10"} {
		if request != "" && state.Authority.Request == "" {
			now = time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
		}
		step, err := certs.Next(rules, state, request, now, rand.Reader)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(now.Format("Jan 02 15:04"), " ", step.State.Authority.Phase, ":")
		for _, a := range step.Actions {
			fmt.Print(" ", a.Code)
		}
		fmt.Println()
		state, now = step.State, step.Next
	}
	// Output:
	// Jan 01 00:00 Steady: CreateCA Publish IssueClient IssueServer
	// Jan 10 00:00 Publish: PublishCA Publish
	// Jan 11 00:05 Switch: SwitchCA Publish IssueClient IssueServer
	// Mar 12 00:03 Switch: IssueClient IssueServer
	// Apr 01 00:05 Steady: DropCA Publish
}
