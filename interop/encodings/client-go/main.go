// Prints objects of every kind, with random fields, in JSON and in protobuf as Kubernetes encodes them.
//
//	encodings COUNT SEED
//
// Each line is a JSON object with apiVersion, kind, json and protobuf (base64, with the envelope). A kind gets COUNT
// objects; the first has no fields, the second all of them, the others random ones.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"sort"
	"strconv"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// filler sets fields at random.
type filler struct {
	random *rand.Rand
	// percent is how many of a hundred fields are set.
	percent int
	// schemas is how many schemas of CRDs are around the current value.
	schemas int
}

const maxSchemas = 3

func (f *filler) text() string {
	const letters = "abcdefghijklmnopqrstuvwxyz-./\"\\\u00e9\u2028<&"
	runes := []rune(letters)
	length := f.random.Intn(9)
	out := make([]rune, length)
	for i := range out {
		out[i] = runes[f.random.Intn(len(runes))]
	}
	return string(out)
}

func (f *filler) anyJSON() []byte {
	values := []string{`{"f:metadata":{"f:name":{}}}`, `[1,"a",null,{"b":1.5}]`, `"text"`, `17`, `true`, `{}`}
	return []byte(values[f.random.Intn(len(values))])
}

// special sets values whose Go types are not plain structs. It returns whether it did.
func (f *filler) special(value reflect.Value) bool {
	switch value.Interface().(type) {
	case metav1.Time:
		value.Set(reflect.ValueOf(metav1.NewTime(time.Unix(f.random.Int63n(4_000_000_000), 0).UTC())))
	case metav1.MicroTime:
		moment := time.Unix(f.random.Int63n(4_000_000_000), f.random.Int63n(1_000_000)*1000).UTC()
		value.Set(reflect.ValueOf(metav1.NewMicroTime(moment)))
	case resource.Quantity:
		texts := []string{"0", "1", "100m", "128Mi", "1500m", "2Gi", "1e3", "0.5"}
		value.Set(reflect.ValueOf(resource.MustParse(texts[f.random.Intn(len(texts))])))
	case intstr.IntOrString:
		if f.random.Intn(2) == 0 {
			value.Set(reflect.ValueOf(intstr.FromInt32(int32(f.random.Uint32()))))
		} else {
			value.Set(reflect.ValueOf(intstr.FromString(f.text())))
		}
	case runtime.RawExtension:
		value.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Any","a":[1,2]}`)}))
	case metav1.FieldsV1:
		value.Set(reflect.ValueOf(metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`)}))
	case apiextensions.JSON:
		value.Set(reflect.ValueOf(apiextensions.JSON{Raw: f.anyJSON()}))
	case apiextensions.JSONSchemaPropsOrArray:
		union := apiextensions.JSONSchemaPropsOrArray{}
		if f.random.Intn(2) == 0 {
			union.Schema = f.schema()
		} else {
			union.JSONSchemas = []apiextensions.JSONSchemaProps{*f.schema(), *f.schema()}
		}
		value.Set(reflect.ValueOf(union))
	case apiextensions.JSONSchemaPropsOrBool:
		union := apiextensions.JSONSchemaPropsOrBool{Allows: f.random.Intn(2) == 0}
		if f.random.Intn(2) == 0 {
			union = apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: f.schema()}
		}
		value.Set(reflect.ValueOf(union))
	case apiextensions.JSONSchemaPropsOrStringArray:
		union := apiextensions.JSONSchemaPropsOrStringArray{}
		if f.random.Intn(2) == 0 {
			union.Schema = f.schema()
		} else {
			union.Property = []string{f.text(), "b"}
		}
		value.Set(reflect.ValueOf(union))
	default:
		return false
	}
	return true
}

func (f *filler) schema() *apiextensions.JSONSchemaProps {
	schema := &apiextensions.JSONSchemaProps{}
	if f.schemas < maxSchemas {
		f.fill(reflect.ValueOf(schema).Elem())
	}
	return schema
}

func (f *filler) fill(value reflect.Value) {
	if f.special(value) {
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		f.fill(value.Elem())
	case reflect.Struct:
		_, isSchema := value.Interface().(apiextensions.JSONSchemaProps)
		if isSchema && f.schemas == maxSchemas {
			return
		}
		if isSchema {
			f.schemas++
			defer func() { f.schemas-- }()
		}
		for i := 0; i < value.NumField(); i++ {
			field := value.Type().Field(i)
			if field.Name == "TypeMeta" || !field.IsExported() {
				continue
			}
			if f.random.Intn(100) < f.percent || field.Anonymous {
				f.fill(value.Field(i))
			}
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			content := make([]byte, f.random.Intn(7))
			f.random.Read(content)
			value.SetBytes(content)
			return
		}
		length := f.random.Intn(3)
		value.Set(reflect.MakeSlice(value.Type(), length, length))
		for i := 0; i < length; i++ {
			f.fill(value.Index(i))
		}
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		for i := f.random.Intn(3); i > 0; i-- {
			key := reflect.New(value.Type().Key()).Elem()
			element := reflect.New(value.Type().Elem()).Elem()
			key.SetString(f.text())
			f.fill(element)
			value.SetMapIndex(key, element)
		}
	case reflect.String:
		value.SetString(f.text())
	case reflect.Bool:
		value.SetBool(f.random.Intn(2) == 0)
	case reflect.Int32, reflect.Int64, reflect.Int:
		value.SetInt(int64(int32(f.random.Uint32())) * int64(f.random.Intn(2)))
	case reflect.Float64:
		value.SetFloat(float64(f.random.Intn(1000)) / 8)
	}
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	seed, _ := strconv.ParseInt(os.Args[2], 10, 64)
	if err := apiextensions.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	asProtobuf := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	asJSON := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{})
	var kinds []schema.GroupVersionKind
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		_, isMessage := reflect.New(goType).Interface().(interface{ Marshal() ([]byte, error) })
		// Watch events are frames of a stream, never objects of their own.
		isMessage = isMessage && kind.Kind != "WatchEvent"
		if isMessage && kind.Version == "v1" || isMessage && kind.Group == "autoscaling" {
			kinds = append(kinds, kind)
		}
	}
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for index, kind := range kinds {
		for n := 0; n < count; n++ {
			percents := []int{0, 100, 50, 15}
			f := &filler{random: rand.New(rand.NewSource(seed + int64(index*1_000_000+n))), percent: percents[n%4]}
			if kind.Group == "apiextensions.k8s.io" && f.percent > 40 {
				f.percent = 40
			}
			object, err := scheme.Scheme.New(kind)
			if err != nil {
				panic(err)
			}
			f.fill(reflect.ValueOf(object).Elem())
			object.GetObjectKind().SetGroupVersionKind(kind)
			var encoded, text bytes.Buffer
			if err := asProtobuf.Encode(object, &encoded); err != nil {
				panic(fmt.Sprint(kind, ": ", err))
			}
			// The JSON of a server: it has decoded the object from protobuf, which does not tell empty lists from absent ones.
			decoded, _, err := asProtobuf.Decode(encoded.Bytes(), nil, nil)
			if err != nil {
				panic(fmt.Sprint(kind, ": ", err))
			}
			decoded.GetObjectKind().SetGroupVersionKind(kind)
			if err := asJSON.Encode(decoded, &text); err != nil {
				panic(fmt.Sprint(kind, ": ", err))
			}
			line, err := json.Marshal(map[string]any{
				"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind,
				"json": json.RawMessage(text.Bytes()), "protobuf": encoded.Bytes(),
			})
			if err != nil {
				panic(fmt.Sprint(kind, ": ", err))
			}
			out.Write(line)
			out.WriteByte('\n')
		}
	}
}
