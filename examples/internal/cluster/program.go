package cluster

import "os/exec"

// StartProgram starts the program at path with exactly the given environment. [Cluster.Stop] does not end it: stop it
// before. On Linux it does not outlive this process.
func (c *Cluster) StartProgram(name, path string, environment []string, args ...string) (*Program, error) {
	command := exec.Command(path, args...)
	command.Env = append([]string{}, environment...) // nil would be that of this process
	return start(name, c.dir, command)
}

// LogTail returns the last lines of the log, for people.
func (p Process) LogTail(lines int) string { return tail(p.Log, lines) }

// WriteCertificates writes tls.crt and tls.key into an existing folder, for one who is server and client as localhost
// and 127.0.0.1, and ca.crt, the authority that signed it and the API server's certificate.
func (c *Cluster) WriteCertificates(dir string) error {
	cert, key, err := c.clients.peer()
	if err != nil {
		return err
	}
	return writeFiles(dir, map[string][]byte{"ca.crt": c.clients.pem, "tls.crt": cert, "tls.key": key})
}
