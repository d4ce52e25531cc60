package output

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestFormats(t *testing.T) {
	value := struct {
		Name string `json:"name"`
	}{"red"}
	people := func(w io.Writer) error {
		t := Table{Header: []string{"NAME", "NOTE"}}
		t.Add("red", "")
		return t.Write(w)
	}
	for format, want := range map[Format]string{
		People: "NAME  NOTE\nred   -\n", JSON: "{\n  \"name\": \"red\"\n}\n", YAML: "name: red\n",
	} {
		var b bytes.Buffer
		if err := format.Print(&b, value, people); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s: %q, want %q", format, b.String(), want)
		}
	}
	var unknown *FormatError
	if err := Format("xml").Print(io.Discard, value, people); !errors.As(err, &unknown) || !strings.Contains(err.Error(), `"xml"`) {
		t.Errorf("format xml: %v", err)
	}
}
