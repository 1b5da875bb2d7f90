// Package cli has what the command lines of all programs have in common.
package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
)

// Parse reads the command line. Help that was asked for is on stdout, with flag.ErrHelp; what is wrong, and the usage after it, is
// on stderr.
func Parse(f *flag.FlagSet, args []string, stdout, stderr io.Writer) error {
	var said bytes.Buffer
	f.SetOutput(&said)
	err := f.Parse(args)
	f.SetOutput(stderr)
	w := stderr
	if err == flag.ErrHelp { //nolint:errorlint // package flag returns it as it is
		w = stdout
	}
	fmt.Fprint(w, said.String())
	return err
}

// ReadFile reads a file of so many bytes at most. Longer ones, and what has no end, are errors.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: must not be larger than %d bytes", name, most)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
