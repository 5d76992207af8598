package api

// The roles of a bundle's splits. Val and test are held out; only train is ever trained on.
const (
	SplitTrain     = "train"
	SplitVal       = "val"
	SplitTest      = "test"
	SplitUnlabeled = "unlabeled"
)

// SplitRole is what a split of a bundle is for. A study names its splits as it likes: the one that is neither train nor
// test is what scores call val, whatever its file is called.
func SplitRole(name string) string {
	switch name {
	case SplitTrain, SplitTest, SplitUnlabeled:
		return name
	default:
		return SplitVal
	}
}

// BundleItem is one item of a bundle as the server keeps and scores it.
type BundleItem struct {
	InstanceID string
	Split      string              // its role: train, val, test or unlabeled
	Text       string              // empty for train
	Targets    map[string][]string // scheme → label or labels; an ordinal answer as its digits
}
