package scrape

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedact(t *testing.T) {
	require.Equal(t, "a [redacted] b", string(redact([]byte("a "+secret+" b"), forms(secret), 64)))
	require.Equal(t, "xx[redacted]", string(redact([]byte("xx"+secret), forms(secret), 3)), "the cut cannot leave a part")
	require.Equal(t, "[redacted]", string(redact([]byte("abc"), forms("abc"), 64)), "a short token")
	require.Equal(t, "[redacted]", string(redact([]byte("~"), forms("~"), 64)), "a token of one byte")
	require.Equal(t, "[redacted]", string(redact([]byte(secret[3:20]), forms(secret), 64)), "a part at the end")
	require.Equal(t, "[redacted]!", string(redact([]byte(secret[:8]+"!"), forms(secret), 64)), "eight bytes in a row are a part")
	require.Equal(t, secret[:7]+"!", string(redact([]byte(secret[:7]+"!"), forms(secret), 64)))
	require.Equal(t, "text", string(redact([]byte("text"), forms(""), 64)))
	require.Equal(t, "tex", string(redact([]byte("text"), forms(""), 3)))
}

func TestRedactLeavesNothing(t *testing.T) {
	for _, token := range []string{secret, `q"w<e>r&t'y\u/i+o=p%41~`} {
		inJSON, err := json.Marshal(token)
		require.NoError(t, err)
		percent := regexp.MustCompile("..").ReplaceAllString(hex.EncodeToString([]byte(token)), "%$0")
		for _, form := range []string{
			token, string(inJSON[1 : len(inJSON)-1]), html.EscapeString(token), url.PathEscape(token), url.QueryEscape(token),
			strings.ToLower(url.QueryEscape(token)), hex.EncodeToString([]byte(token)), strings.ToUpper(hex.EncodeToString([]byte(token))),
			percent, strings.ToUpper(percent), base64.RawStdEncoding.EncodeToString([]byte(token)), base64.RawURLEncoding.EncodeToString([]byte(token)),
		} {
			reverse := []byte(form)
			slices.Reverse(reverse)
			for _, sent := range []string{form, string(reverse)} {
				for range 4 { // as it is, and quoted up to three times
					require.Equal(t, "[redacted]", string(redact([]byte(sent), forms(token), 64)), sent)
					sent = strings.TrimSuffix(strings.TrimPrefix(strconv.Quote(sent), `"`), `"`)
				}
			}
		}
	}
}

func TestRedactOfWhatIsWithinBase64(t *testing.T) {
	for before, shown := range map[string]int{"a": 2, "ab": 3} {
		token := "0123456789-token-of-27-bytes"[:29-len(before)-1]
		whole := base64.StdEncoding.EncodeToString([]byte(before + token))
		for strings.HasSuffix(whole, "=") {
			token = token[:len(token)-1]
			whole = base64.StdEncoding.EncodeToString([]byte(before + token))
		}
		require.Equal(t, whole[:shown]+"[redacted]", string(redact([]byte(whole), forms(token), 64)))
	}
}

func TestTokensInDisguise(t *testing.T) {
	reverse := func(s string) string { b := []byte(s); slices.Reverse(b); return string(b) }
	disguises := map[string]func(string) string{
		"as it is": func(s string) string { return s }, "backwards": reverse, "quoted": strconv.Quote,
		"quoted twice":         func(s string) string { return strconv.Quote(strconv.Quote(s)) },
		"base64":               func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 of the header": func(s string) string { return base64.URLEncoding.EncodeToString([]byte("Bearer " + s)) },
		"base64 with a colon":  func(s string) string { return base64.StdEncoding.EncodeToString([]byte("ab" + s + ":x")) },
		"base64 backwards":     func(s string) string { return reverse(base64.StdEncoding.EncodeToString([]byte(s))) },
		"hexadecimal":          func(s string) string { return hex.EncodeToString([]byte(s)) },
		"a query":              url.QueryEscape, "a path": url.PathEscape, "HTML": html.EscapeString,
		"percent": func(s string) string {
			return strings.ToUpper(regexp.MustCompile("..").ReplaceAllString(hex.EncodeToString([]byte(s)), "%$0"))
		},
	}
	for _, token := range []string{secret, `a"b"c"d"e"f"g"h"i"j"k`, `q\w\e\r\t\y\u\i\o\p`, `<&">/+=%41%42\"'.~abcdef`, "short1"} {
		for name, disguise := range disguises {
			sent := disguise(token)
			for _, body := range []struct{ contentType, text string }{
				{"text/html", "<p>" + sent + "</p>"},
				{"x/" + sent, ""},
				{textVersion, "vllm:num_requests_waiting " + sent + "\n"},
				{textVersion, "vllm:num_requests_waiting{a=" + strconv.Quote(sent) + "} 1\nvllm:num_requests_waiting{a=" + strconv.Quote(sent) + "} 1\n"},
			} {
				base := serve(t, answer(body.contentType, body.text))
				s := newScraper(t, Config{Token: token, AllowTokenOverHTTP: true})
				sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
				require.NotNil(t, sweep.Pods[0].Values[0].Err)
				said := sweep.Pods[0].Values[0].Err.Error()
				for _, shown := range []string{sent, strings.Trim(strconv.Quote(sent), `"`)} {
					for k := range len(shown) - 2*telling {
						require.NotContains(t, said, shown[k:k+2*telling], "%s of %s in %s", name, token, body.text)
					}
				}
			}
		}
	}
}

func TestErrorsAreShort(t *testing.T) {
	f := &fetcher{}
	require.Equal(t, strconv.Quote(strings.Repeat("x", 64)), f.excerpt(bytes.Repeat([]byte("x"), 1000)))
	long := f.clean(failf(Parse, "%s", strings.Repeat("x", 1000)))
	require.Equal(t, "Parse: "+strings.Repeat("x", 300), long.Error())
}
