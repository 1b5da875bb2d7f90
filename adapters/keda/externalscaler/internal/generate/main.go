// Command generate writes the Go code of a .proto file without protoc: protocompile compiles the file, and the plugins
// protoc-gen-go and protoc-gen-go-grpc, at the versions in go.mod, are asked as protoc would ask them.
//
//	generate -out DIR file.proto
//
// writes DIR/file.pb.go and DIR/file_grpc.pb.go. The .proto file is looked for in the working directory; the plugins are
// run by "go tool" in the folder of this program, which -tools names.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	out := flag.String("out", ".", "folder to write to")
	tools := flag.String("tools", ".", "folder of the module whose go.mod has the plugins")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: generate [-out DIR] [-tools DIR] file.proto")
		os.Exit(2)
	}
	if err := run(context.Background(), flag.Arg(0), *out, *tools); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file, out, tools string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{}),
		SourceInfoMode: protocompile.SourceInfoStandard, // for the comments
	}
	files, err := compiler.Compile(ctx, file)
	if err != nil {
		return err
	}
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(files[0])},
	})
	if err != nil {
		return err
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := ask(ctx, plugin, request, out, tools); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

func ask(ctx context.Context, plugin string, request []byte, out, tools string) error {
	c := exec.CommandContext(ctx, "go", "tool", plugin)
	c.Dir, c.Stdin, c.Stderr = tools, bytes.NewReader(request), os.Stderr
	said, err := c.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(said, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("refused: %s", response.GetError())
	}
	for _, f := range response.GetFile() {
		content, err := private(f.GetContent())
		if err != nil {
			return fmt.Errorf("%s: %w", f.GetName(), err)
		}
		if err := os.WriteFile(filepath.Join(out, f.GetName()), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// private has what protoc-gen-go wrote register its file and messages in registries of their own. In the global ones the
// names are KEDA's: a program that links both would not start.
func private(code string) ([]byte, error) {
	const file, types, imported = "File: protoimpl.DescBuilder{", "out := protoimpl.TypeBuilder{", "import ("
	if !strings.Contains(code, types) {
		return []byte(code), nil
	}
	for _, p := range [][2]string{
		{imported, `protoregistry "google.golang.org/protobuf/reflect/protoregistry"`},
		{types, "TypeRegistry: new(protoregistry.Types),"},
		{file, "FileRegistry: new(protoregistry.Files),"},
	} {
		if strings.Count(code, p[0]) != 1 {
			return nil, fmt.Errorf("%q is not there once: protoc-gen-go writes otherwise than it did", p[0])
		}
		code = strings.Replace(code, p[0], p[0]+"\n"+p[1], 1)
	}
	return format.Source([]byte(code))
}
