// Controller is the whole of a controller, to be copied: it scales a Deployment by a number of yours, with client-go and
// this library. Its state is in an annotation of the Deployment, so that one update has both, or neither.
//
//	go run ./examples/controller
//
// It runs 25 rounds against client-go's fake clientset. A real one has a client of kubernetes.NewForConfig, takes time.Now
// as now, and sleeps for loop.RequeueAfter(now, time.Now(), step.Next(), 15*time.Second) between rounds.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

const annotation = "example.com/scaling-state" // where the state is

// newLoop returns what decides: one more above 10 waiting requests a replica, one less below 2, of 1 to 8.
func newLoop() (*loop.Loop, error) {
	scaler, err := realtime.New(realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: "waiting", High: 10, Low: 2}))
	if err != nil {
		return nil, err // every wrong field, with its value and the rule
	}
	return loop.New(scaling.GroupOf(scaling.New(scaler)), loop.Config{Atomic: true, Conflicts: 3})
}

// round reads, decides and writes, again if the Deployment has changed in between.
func round(ctx context.Context, l *loop.Loop, client appsv1client.DeploymentInterface, name string, now time.Time, waiting scaling.Reading) (*loop.Step, error) {
	for {
		d, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if l.NeedsRestore() {
			if err := l.Restore([]byte(d.Annotations[annotation])); err != nil {
				return nil, err // it is kept as it is, and nothing is written, until somebody mends or removes it
			}
		}
		l.Read(now, loop.Target{Key: name, ID: string(d.UID), Version: d.ResourceVersion, Replicas: *d.Spec.Replicas})
		step := l.Decide(now, scaling.OneTarget(d.Status.ReadyReplicas, waiting))
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, annotation, string(step.Store))
		for w := range l.Writes() {
			d.Spec.Replicas = &w.To
			_, err = client.Update(ctx, d, metav1.UpdateOptions{}) // on condition of d.ResourceVersion
			l.Wrote(w, result(err))
		}
		if !step.Acts() && step.Store != nil {
			_, err = client.Update(ctx, d, metav1.UpdateOptions{})
			l.Saved(err)
		}
		if _, again := l.Advance(now); !again {
			return step, err
		}
	}
}

// result says what an answer means: after a lost one nobody knows.
func result(err error) loop.Result {
	switch {
	case err == nil:
		return loop.Applied
	case apierrors.IsConflict(err):
		return loop.Conflict
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsNotFound(err):
		return loop.Refused
	}
	return loop.Uncertain
}

func main() {
	cli.Alone("controller scales a Deployment of a fake cluster for 25 rounds. It takes no arguments.")
	replicas := int32(3)
	client := fake.NewClientset(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "chat", UID: "1"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas},
	}).AppsV1().Deployments("default")
	l, err := newLoop()
	for now := time.Unix(0, 0); err == nil && now.Before(time.Unix(25*15, 0)); now = now.Add(15 * time.Second) {
		var step *loop.Step
		if step, err = round(context.Background(), l, client, "chat", now, scaling.Exactly("waiting", 14)); err == nil && step.Acts() {
			fmt.Println(now.UTC().Format(time.TimeOnly), step.Targets[0].Reason())
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}
