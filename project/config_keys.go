package project

import (
	"reflect"
	"slices"
	"strings"

	"potato/api"
)

// KeyTable lists the keys of one block of the config, for the documentation.
type KeyTable struct {
	Block string // where the block stands, e.g. model_training.writeback
	Keys  []Key
}

// Key is one row of a KeyTable.
type Key struct {
	Name    string
	Type    string // in words
	Default string // as it would be written; empty when there is none
	Doc     string
	Sbatch  string // the flag of sbatch that it becomes, without dashes
}

// KeyTables lists every key of model_training: the block itself, the blocks in it, and one table for each type of
// backend. They are made from the types that Load decodes into, so no key can be missing.
func KeyTables() []KeyTable {
	tables := []KeyTable{
		{trainingKey, keyRows(reflect.TypeFor[ModelTraining](), "")},
		{trainingKey + ".writeback", keyRows(reflect.TypeFor[Writeback](), "")},
		{trainingKey + ".auto_retrain", keyRows(reflect.TypeFor[AutoRetrain](), "")},
	}
	for _, t := range []api.BackendType{api.BackendSSH, api.BackendSlurm, api.BackendAgent} {
		tables = append(tables, KeyTable{trainingKey + ".backends (" + string(t) + ")", keyRows(reflect.TypeFor[Backend](), t)})
	}
	return tables
}

func keyRows(t reflect.Type, of api.BackendType) []Key {
	var rows []Key
	for f := range t.Fields() {
		name := f.Tag.Get("yaml")
		if name == "-" || name == "" || of != "" && !slices.Contains(strings.Split(f.Tag.Get("on"), ","), string(of)) {
			continue
		}
		row := Key{name, typeInWords(f.Type, f.Tag.Get("rule")), f.Tag.Get("default"), f.Tag.Get("doc"), f.Tag.Get("sbatch")}
		if of == api.BackendSlurm && name == "remote_dir" {
			row.Default = "" // It is required there.
		}
		rows = append(rows, row)
	}
	return rows
}

func typeInWords(t reflect.Type, rule string) string {
	if list, ok := strings.CutPrefix(rule, "oneof="); ok {
		return orList(strings.Fields(list))
	}
	switch t {
	case reflect.TypeFor[MaxConcurrentRuns]():
		return "number or map"
	case reflect.TypeFor[WarmWorker]():
		return "auto or false"
	case reflect.TypeFor[Splits](), reflect.TypeFor[Backends]():
		return "map"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeInWords(t.Elem(), rule)
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list"
	case reflect.Map, reflect.Struct:
		return "map"
	}
	return "text"
}
