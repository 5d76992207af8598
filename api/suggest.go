package api

// Suggest returns the candidate that word was probably meant to be, or "". A candidate is close enough when its edit
// distance is under half the word's length plus one: a fixed limit would propose any short word for any other.
func Suggest(word string, candidates []string) string {
	if len(word) > 100 { // No key or name of ours is that long, and the distance costs the product of both lengths.
		return ""
	}
	best, least := "", len([]rune(word))/2+1
	for _, c := range candidates {
		if c == word {
			continue
		}
		// On a tie the first in alphabetical order wins, so that callers may pass the keys of a map.
		if d := editDistance(word, c); d < least || d == least && best != "" && c < best {
			best, least = c, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours (optimal string alignment)
// that turn a into b: pyhton is one step from python.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			replace := last[j-1]
			if x[i-1] != y[j-1] {
				replace++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
