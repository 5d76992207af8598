package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"strconv"

	"potato/api/pyjson"
)

// maxPredictionLine bounds one line of a predictions file; hundreds of labels with their probabilities are far below it.
const maxPredictionLine = 16 << 20

// ReadPredictions reads a predictions.jsonl line by line. A line that is no prediction ends it with an Invalid error
// that has code bad_prediction. Python writes NaN where JSON has no word for it, and ids that are not UTF-8: both are read as
// they are, so that the rules can refuse the first and the second finds its item.
func ReadPredictions(r io.Reader) iter.Seq2[Prediction, error] {
	return func(yield func(Prediction, error) bool) {
		lines := bufio.NewReaderSize(r, 256<<10)
		var long []byte
		reader := newPredictionReader()
		for n := 1; ; n++ {
			line, err := lines.ReadSlice('\n')
			for long = long[:0]; errors.Is(err, bufio.ErrBufferFull) && len(long) < maxPredictionLine; {
				long = append(long, line...)
				line, err = lines.ReadSlice('\n')
			}
			if len(long) > 0 {
				long = append(long, line...)
				line = long
			}
			if err != nil && !errors.Is(err, io.EOF) {
				if errors.Is(err, bufio.ErrBufferFull) {
					err = badPrediction(n, "is longer than "+strconv.Itoa(maxPredictionLine>>20)+" MB")
				}
				yield(Prediction{}, err)
				return
			}
			if len(bytes.TrimSpace(line)) > 0 {
				p, bad := reader.read(line)
				if bad != nil {
					yield(Prediction{}, badPrediction(n, bad.Error()))
					return
				}
				if !yield(p, nil) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

func badPrediction(line int, what string) *Error {
	return Invalidf("bad_prediction", "line %d of the predictions is no prediction: %s", line, what).
		WithHint("each line is a JSON object with instance_id, schema_name, payload and confidence")
}

// predictionReader decodes lines; scheme names and labels, which come over and over, are kept once.
type predictionReader struct {
	d       *pyjson.Decoder
	schemas map[string]string
	labels  map[string]string
}

func newPredictionReader() *predictionReader {
	return &predictionReader{d: pyjson.NewBytes(nil), schemas: map[string]string{}, labels: map[string]string{}}
}

func (r *predictionReader) read(line []byte) (Prediction, error) {
	r.d.Reset(line)
	var p Prediction
	named := false
	err := r.d.EachMember(func(name []byte) (err error) {
		switch string(name) {
		case "instance_id":
			p.InstanceID, err = r.d.ReadString()
			named = true
		case "schema_name":
			p.SchemaName, err = r.known(r.schemas)
		case "confidence":
			p.Confidence, err = r.number()
		case "payload":
			p.Payload, err = r.payload()
		default:
			err = r.d.Skip()
		}
		return err
	})
	if err != nil {
		return p, err
	}
	if more, err := r.d.More(); more || err != nil {
		return p, r.d.Errorf("something follows the object")
	}
	if !named || p.SchemaName == "" {
		return p, errors.New("instance_id or schema_name is missing")
	}
	return p, nil
}

// PayloadReader reads payloads one after another.
type PayloadReader struct{ r predictionReader }

// NewPayloadReader makes one.
func NewPayloadReader() *PayloadReader { return &PayloadReader{r: *newPredictionReader()} }

// Read is the other way of Payload.AppendJSON.
func (r *PayloadReader) Read(text []byte) (Payload, error) {
	r.r.d.Reset(text)
	return r.r.payload()
}

func (r *predictionReader) payload() (Payload, error) {
	var p Payload
	err := r.d.EachMember(func(name []byte) (err error) {
		switch string(name) {
		case "label":
			p.Label, err = r.label()
		case "labels":
			p.Labels, err = r.labelList()
		case "confidence":
			p.Confidence, err = r.number()
		case "scores":
			p.Scores, err = r.scores()
		default:
			err = r.d.Skip()
		}
		return err
	})
	return p, err
}

func (r *predictionReader) scores() (map[string]float64, error) {
	if null, err := r.null(); null || err != nil {
		return nil, err
	}
	scores := map[string]float64{}
	err := r.d.EachMember(func(name []byte) error {
		label := intern(r.labels, name)
		f, err := r.number()
		if err == nil && f == nil {
			return r.d.Errorf("the score of %q is null", label)
		}
		if err == nil {
			scores[label] = *f
		}
		return err
	})
	return scores, err
}

func (r *predictionReader) labelList() ([]string, error) {
	if null, err := r.null(); null || err != nil {
		return nil, err
	}
	labels := []string{}
	err := r.d.EachElement(func() error {
		label, err := r.known(r.labels)
		labels = append(labels, label)
		return err
	})
	return labels, err
}

func (r *predictionReader) label() (string, error) {
	if null, err := r.null(); null || err != nil {
		return "", err
	}
	return r.known(r.labels)
}

// known reads a string and returns the copy of it that is already there.
func (r *predictionReader) known(table map[string]string) (string, error) {
	b, err := r.d.ReadStringBytes()
	if err != nil {
		return "", err
	}
	return intern(table, b), nil
}

func intern(table map[string]string, b []byte) string {
	if s, ok := table[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(table) < 100_000 {
		table[s] = s
	}
	return s
}

func (r *predictionReader) null() (bool, error) {
	k, err := r.d.Peek()
	if err != nil || k != pyjson.Null {
		return false, err
	}
	return true, r.d.Skip()
}

func (r *predictionReader) number() (*float64, error) {
	if null, err := r.null(); null || err != nil {
		return nil, err
	}
	f, err := r.d.ReadFloat()
	if err != nil {
		return nil, err
	}
	return &f, nil
}
