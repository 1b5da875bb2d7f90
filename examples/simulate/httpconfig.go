package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/prometheus/common/config"

	"github.com/inferscale/inferscale/examples/internal/cli"
)

// configure reads the file of -http-config, which is that of promtool's --http.config.file. What it does not say of a proxy is as
// without it: the environment says.
func (r *remote) configure(c *carrier, transport *http.Transport) error {
	data, err := cli.ReadFile(r.httpConfig, cli.Document)
	if err != nil {
		return err
	}
	f, err := config.LoadHTTPConfig(string(data))
	if err != nil {
		return discreet(err)
	}
	f.SetDirectory(filepath.Dir(r.httpConfig))
	if f.OAuth2 != nil {
		return errors.New("oauth2: is not supported, use authorization with a token")
	}
	if transport.TLSClientConfig, err = config.NewTLSConfig(&f.TLSConfig); err != nil {
		return fmt.Errorf("tls_config: %w", err)
	}
	transport.ForceAttemptHTTP2 = f.EnableHTTP2
	if proxy := f.Proxy(); proxy != nil {
		transport.Proxy, transport.ProxyConnectHeader = proxy, f.GetProxyConnectHeader()
	}
	read := func(field string, text config.Secret, file, ref string) string {
		if ref != "" && err == nil {
			err = fmt.Errorf("%s_ref: is not supported, use %s_file", field, field)
		}
		if file == "" {
			return string(text)
		}
		data, failed := cli.ReadFile(file, cli.Document)
		if failed != nil && err == nil {
			err = fmt.Errorf("%s_file: %w", field, failed)
		}
		return strings.TrimSpace(string(data))
	}
	if a := f.BasicAuth; a != nil {
		user := read("basic_auth.username", config.Secret(a.Username), a.UsernameFile, a.UsernameRef)
		password := read("basic_auth.password", a.Password, a.PasswordFile, a.PasswordRef)
		sent := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		c.header.Set("Authorization", "Basic "+sent)
		c.hide(cmp.Or(password, user), sent)
	}
	if a := f.Authorization; a != nil {
		credentials := read("authorization.credentials", a.Credentials, a.CredentialsFile, a.CredentialsRef)
		c.header.Set("Authorization", a.Type+" "+credentials)
		c.hide(credentials)
	}
	if f.HTTPHeaders != nil {
		for name, h := range f.HTTPHeaders.Headers {
			for _, value := range h.Values {
				c.header.Add(name, value)
			}
			for _, secret := range h.Secrets {
				c.header.Add(name, string(secret))
				c.hide(string(secret))
			}
			for _, file := range h.Files {
				secret := read("http_headers."+name, "", file, "")
				c.header.Add(name, secret)
				c.hide(secret)
			}
		}
	}
	return err
}

// discreet is an error of a file with secrets without what it quotes, which may be one.
func discreet(err error) error {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return errors.New("proxy_url: must be a URL")
	}
	says := err.Error()
	if !strings.HasPrefix(says, "yaml: ") {
		return err // of fields that do not go together
	}
	where := strings.Join(regexp.MustCompile(`\bline \d+`).FindAllString(says, 3), ", ")
	return fmt.Errorf("%s: must be as promtool's --http.config.file, with basic_auth, authorization, tls_config, http_headers or proxy_url", cmp.Or(where, "YAML"))
}

// hide keeps secrets out of what is said, also as they are in JSON.
func (c *carrier) hide(secrets ...string) {
	for _, s := range secrets {
		if s == "" {
			continue
		}
		escaped, _ := json.Marshal(s)
		c.secrets = append(c.secrets, s, string(escaped[1:len(escaped)-1]))
	}
}
