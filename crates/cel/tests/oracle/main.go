// Command oracle evaluates expressions with the CEL environment of Kubernetes.
//
// It reads one expression a line from standard input and writes one JSON outcome a line to standard output. Lines that
// start with # set the schema, self, oldSelf and options of the expressions after them; ␤ is a line break.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type testCase struct {
	Expr     string          `json:"expr"`
	Schema   json.RawMessage `json:"schema,omitempty"`
	Self     any             `json:"self,omitempty"`
	Old      any             `json:"old,omitempty"`
	Optional bool            `json:"optional,omitempty"`
	Loose    bool            `json:"loose,omitempty"`
}

type outcome struct {
	testCase
	Issues  string  `json:"issues,omitempty"`
	Program string  `json:"program,omitempty"`
	Type    string  `json:"type,omitempty"`
	Min     uint64  `json:"min"`
	Max     uint64  `json:"max"`
	Cost    *uint64 `json:"cost,omitempty"`
	Value   string  `json:"value,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// sizes looks up the largest size of the value at a path below self.
type sizes struct{ root *apiservercel.DeclType }

func (s sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	at := s.root
	for _, step := range path[1:] {
		var next *apiservercel.DeclType
		switch step {
		case "@items", "@values":
			next = at.ElemType
		case "@keys":
			next = at.KeyType
		default:
			if f, ok := at.Fields[step]; ok {
				next = f.Type
			}
		}
		if next == nil {
			return nil
		}
		at = next
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(at.MaxElements)}
}

func (s sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func structural(raw json.RawMessage) *schema.Structural {
	var props v1.JSONSchemaProps
	if len(raw) == 0 {
		raw = json.RawMessage(`{"type":"boolean"}`)
	}
	must(json.Unmarshal(raw, &props))
	var internal apiextensions.JSONSchemaProps
	must(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil))
	s, err := schema.NewStructural(&internal)
	must(err)
	return s
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func run(c testCase) (o outcome) {
	o.testCase = c
	s := structural(c.Schema)
	root := s.Type == "object" && len(c.Schema) > 0 && s.AdditionalProperties == nil
	decl := model.SchemaDeclType(s, root)
	scoped := decl.MaybeAssignTypeName("selfType")
	old := scoped.CelType()
	if c.Optional {
		old = types.NewOptionalType(old)
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", scoped.CelType()), cel.Variable("oldSelf", old)},
		DeclTypes:         []*apiservercel.DeclType{scoped},
	})
	must(err)
	env := set.NewExpressionsEnv()
	ast, issues := env.Compile(c.Expr)
	if issues != nil {
		o.Issues = issues.String()
		return
	}
	o.Type = checker.FormatCELType(ast.OutputType())
	estimator := &library.CostEstimator{SizeEstimator: sizes{decl}}
	estimate, err := env.EstimateCost(ast, estimator)
	must(err)
	o.Min, o.Max = estimate.Min, estimate.Max
	program, err := env.Program(ast, cel.CostLimit(1000000), cel.CostTracking(estimator))
	if err != nil {
		o.Program = err.Error()
		return
	}
	valued := s
	if root {
		valued = model.WithTypeAndObjectMeta(s)
	}
	vars := map[string]any{}
	if c.Self != nil {
		vars["self"] = common.UnstructuredToVal(c.Self, &model.Structural{Structural: valued})
	}
	if c.Old != nil {
		v := common.UnstructuredToVal(c.Old, &model.Structural{Structural: valued})
		vars["oldSelf"] = v
		if c.Optional {
			vars["oldSelf"] = types.OptionalOf(v)
		}
	} else if c.Optional {
		vars["oldSelf"] = types.OptionalNone
	}
	value, details, err := program.Eval(vars)
	if details != nil && details.ActualCost() != nil {
		o.Cost = details.ActualCost()
	}
	if err != nil {
		o.Error = err.Error()
		return
	}
	o.Value = types.Format(value)
	return
}

// read applies a directive such as "#self {}" to the cases after it.
func (c *testCase) read(line string) {
	name, value, _ := strings.Cut(strings.TrimPrefix(line, "#"), " ")
	raw := []byte(value)
	switch name {
	case "schema":
		*c = testCase{Schema: json.RawMessage(raw)}
	case "self":
		c.Self = nil
		must(utiljson.Unmarshal(raw, &c.Self))
	case "old":
		c.Old = nil
		must(utiljson.Unmarshal(raw, &c.Old))
	case "optional":
		c.Optional = value == "true"
	case "loose":
		c.Loose = value == "true"
	}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<26)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	var c testCase
	for in.Scan() {
		line := in.Text()
		if strings.HasPrefix(line, "#") {
			c.read(line)
			continue
		}
		if line == "" {
			continue
		}
		c.Expr = strings.ReplaceAll(line, "␤", "\n")
		func() {
			defer func() {
				if r := recover(); r != nil {
					_ = out.Encode(outcome{testCase: c, Error: fmt.Sprintf("panic: %v", r)})
				}
			}()
			_ = out.Encode(run(c))
		}()
	}
}
