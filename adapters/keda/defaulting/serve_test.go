package defaulting_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
)

func review(tb testing.TB, object string) string {
	tb.Helper()
	raw, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  request(admissionv1.Create, object),
	})
	require.NoError(tb, err)
	return string(raw)
}

func serve(d *defaulting.Defaulter, method, contentType, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/", strings.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	return w
}

func TestServeHTTP(t *testing.T) {
	d := defaulter(t)
	object := scaledObject(`{"triggers":[` + ours + `]}`)
	w := serve(d, http.MethodPost, "application/json; charset=utf-8", review(t, object))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Equal(t, metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, answer.TypeMeta)
	require.Nil(t, answer.Request)
	require.Equal(t, d.Review(request(admissionv1.Create, object)), answer.Response)
}

func TestServeHTTPOfOthers(t *testing.T) {
	d := defaulter(t)
	good := review(t, `{}`)
	for _, row := range []struct {
		method, contentType, body string
		want                      int
	}{
		{http.MethodGet, "application/json", good, http.StatusMethodNotAllowed},
		{http.MethodPost, "", good, http.StatusUnsupportedMediaType},
		{http.MethodPost, "application/yaml", good, http.StatusUnsupportedMediaType},
		{http.MethodPost, "application/json", ``, http.StatusBadRequest},
		{http.MethodPost, "application/json", `{}`, http.StatusBadRequest},
		{http.MethodPost, "application/json", strings.Replace(good, "/v1", "/v1beta1", 1), http.StatusBadRequest},
		{http.MethodPost, "application/json", strings.Replace(good, "AdmissionReview", "Other", 1), http.StatusBadRequest},
		{http.MethodPost, "application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, http.StatusBadRequest},
		{http.MethodPost, "application/json", strings.Repeat(" ", defaulting.MaxBody-len(good)) + good, http.StatusOK},
		{http.MethodPost, "application/json", strings.Repeat(" ", defaulting.MaxBody-len(good)+1) + good, http.StatusRequestEntityTooLarge},
	} {
		w := serve(d, row.method, row.contentType, row.body)
		require.Equal(t, row.want, w.Code, fmt.Sprintf("%s %s %.60s", row.method, row.contentType, row.body))
		require.Equal(t, row.want == http.StatusMethodNotAllowed, w.Header().Get("Allow") == http.MethodPost)
	}
}

// TestServeHTTPHasABound: who sends a lot at once is refused, and takes neither the process its memory nor others their
// part.
func TestServeHTTPHasABound(t *testing.T) {
	d := defaulter(t)
	good := review(t, `{}`)
	post := func(client string, body io.Reader) int {
		req := httptest.NewRequest(http.MethodPost, "/", body)
		req.Header.Set("Content-Type", "application/json")
		req.RemoteAddr = client + ":1234"
		w := httptest.NewRecorder()
		d.ServeHTTP(w, req)
		return w.Code
	}
	var done sync.WaitGroup
	var bodies []*io.PipeWriter
	for _, client := range []string{"10.0.0.1", "10.0.0.2"} { // they do not say how long they are, and never end
		body, w := io.Pipe()
		bodies = append(bodies, w)
		done.Add(1)
		go func() {
			defer done.Done()
			post(client, body)
		}()
		_, err := w.Write(make([]byte, defaulting.MaxPending/2))
		require.NoError(t, err)
		_, err = w.Write(nil) // whoever reads on has counted what came before
		require.NoError(t, err)
	}
	require.Equal(t, http.StatusTooManyRequests, post("10.0.0.1", strings.NewReader(good)))
	require.Equal(t, http.StatusOK, post("10.0.0.3", strings.NewReader(good)))
	require.Equal(t, http.StatusTooManyRequests, post("10.0.0.3", strings.NewReader(strings.Repeat(" ", defaulting.MaxPending/3)+good)),
		"more than an equal part, where there is nothing left")
	for _, body := range bodies {
		require.NoError(t, body.Close())
	}
	done.Wait()
	for range 3 {
		require.Equal(t, http.StatusOK, post("10.0.0.1", strings.NewReader(strings.Repeat(" ", defaulting.MaxBody-len(good))+good)), "all is given back")
	}
}

// TestIdleBodiesKeepNobodyOut: connections that announce a body and send next to nothing of it were counted as if they
// had sent all that may come, and three of them had nearly every review refused.
func TestIdleBodiesKeepNobodyOut(t *testing.T) {
	server := httptest.NewServer(defaulter(t))
	defer server.Close()
	for _, length := range []string{"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "Content-Length: 6000000\r\n\r\n{"} {
		for range 3 {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n%s", length)
			require.NoError(t, err)
			reply := make([]byte, len("HTTP/1.1 100"))
			_, err = io.ReadFull(conn, reply) // it waits for the body
			require.NoError(t, err)
			require.Equal(t, "HTTP/1.1 100", string(reply))
		}
	}
	good := review(t, scaledObject(`{"triggers":[`+ours+`]}`))
	for range 100 {
		reply, err := server.Client().Post(server.URL, "application/json", strings.NewReader(good))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, reply.StatusCode)
		_, _ = io.Copy(io.Discard, reply.Body)
		require.NoError(t, reply.Body.Close())
	}
}

// A deadlineRecorder is a ResponseWriter that says until when a body may take.
type deadlineRecorder struct {
	*httptest.ResponseRecorder

	until time.Time
}

func (r *deadlineRecorder) SetReadDeadline(t time.Time) error {
	r.until = t
	return nil
}

func TestBodiesHaveADeadline(t *testing.T) {
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(review(t, `{}`)))
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	defaulter(t).ServeHTTP(w, req)
	require.Equal(t, http.StatusOK, w.Code)
	require.WithinRange(t, w.until, began, time.Now().Add(2*time.Second))
}

// TestBodiesThatGrowAreRefused: a body of a few megabytes was hundreds once it was decoded.
func TestBodiesThatGrowAreRefused(t *testing.T) {
	for _, element := range []string{"0,", "[", "{},", `{"":{},`} {
		body := strings.TrimSuffix(review(t, `{}`), "}") + `,"x":` + strings.Repeat(element, defaulting.MaxValues+1)
		require.Equal(t, http.StatusRequestEntityTooLarge, serve(defaulter(t), http.MethodPost, "application/json", body).Code, element)
	}
}

// A from is a connection of a client that is not there.
type from struct {
	net.Conn

	client string
	closed bool
}

func (c *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.client), Port: 1} }

func (c *from) Close() error {
	c.closed = true
	return nil
}

// TestServerSharesConnections: who opens many loses its own, also when all there may be are open.
func TestServerSharesConnections(t *testing.T) {
	server := defaulting.NewServer(http.NotFoundHandler(), nil)
	open := func(client string) *from {
		c := &from{client: client}
		server.ConnState(c, http.StateNew)
		return c
	}
	var all []*from
	for i := range 600 {
		c := open("10.0.0.1")
		require.Equal(t, i >= 256, c.closed, i)
		all = append(all, c)
	}
	for i := range 600 {
		c := open("10.0.0.2")
		require.Equal(t, i >= 256, c.closed, i)
		all = append(all, c)
	}
	for i := range 10 {
		require.False(t, open("10.0.1."+strconv.Itoa(i)).closed)
	}
	still := 0
	for _, c := range all {
		if !c.closed {
			still++
		}
	}
	require.Equal(t, 512-10, still)
	for _, c := range all { // the server says so of those that we closed too
		server.ConnState(c, http.StateClosed)
	}
	for range 256 {
		require.False(t, open("10.0.0.1").closed)
	}
}

// TestServerHasTimes: a connection that says nothing ends soon.
func TestServerHasTimes(t *testing.T) {
	server := defaulting.NewServer(http.NotFoundHandler(), nil)
	require.Equal(t, 2*time.Second, server.ReadHeaderTimeout)
	require.Equal(t, 10*time.Second, server.WriteTimeout)
	require.Greater(t, server.IdleTimeout, 90*time.Second)
	require.Equal(t, 16<<10, server.MaxHeaderBytes)
	config := new(tls.Config)
	require.Equal(t, []string{"http/1.1"}, defaulting.NewServer(http.NotFoundHandler(), config).TLSConfig.NextProtos, "a request is a connection")
	require.Empty(t, config.NextProtos, "the caller's stays")
}
