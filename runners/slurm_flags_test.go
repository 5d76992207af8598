package runners

import (
	"reflect"
	"strings"
	"testing"

	"potato/project"
)

// Every setting of the scheduler in the config reaches the agent under the same key, so that none is lost on the way (C5).
func TestEverySettingReachesTheAgent(t *testing.T) {
	b := project.Backend{}
	config := reflect.ValueOf(&b).Elem()
	of := map[string]string{} // key: name of the field
	for i := range config.NumField() {
		f := config.Type().Field(i)
		of[f.Tag.Get("yaml")] = f.Name
		switch v := config.Field(i); v.Kind() {
		case reflect.String:
			v.SetString("x-" + f.Name)
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(i + 1))
		case reflect.Float64:
			v.SetFloat(float64(i + 1))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.String {
				v.Set(reflect.ValueOf([]string{f.Name}).Convert(v.Type()))
			}
		}
	}
	got := reflect.ValueOf(*(&SSH{}).slurmConfig(b))
	for i := range got.NumField() {
		f := got.Type().Field(i)
		key, _ := tags(f)
		from, known := of[key]
		if !known {
			t.Errorf("%s of the agent is no key of the config", key)
			continue
		}
		if key == "env" { // with the threads in it
			continue
		}
		want := config.FieldByName(from)
		if want.Kind() == reflect.String {
			if got.Field(i).String() != want.String() {
				t.Errorf("%s: the agent has %v, the config %v", key, got.Field(i), want)
			}
			continue
		}
		if !reflect.DeepEqual(got.Field(i).Interface(), want.Interface()) {
			t.Errorf("%s: the agent has %v, the config %v", key, got.Field(i), want)
		}
	}
	for i := range config.NumField() { // and back: a flag of sbatch that the agent does not know
		f := config.Type().Field(i)
		if f.Tag.Get("sbatch") == "" {
			continue
		}
		known := false
		for j := range got.NumField() {
			key, flag := tags(got.Type().Field(j))
			known = known || key == f.Tag.Get("yaml") && flag == f.Tag.Get("sbatch")
		}
		if !known {
			t.Errorf("%s is a flag of sbatch in the config, and none of the agent's", f.Tag.Get("yaml"))
		}
	}
}

// tags are the key and the flag of a setting of the agent's.
func tags(f reflect.StructField) (key, flag string) {
	key, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	return key, f.Tag.Get("sbatch")
}
