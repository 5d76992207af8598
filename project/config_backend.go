package project

import "potato/api"

// Backend is one entry of model_training.backends (C4-C7). One struct serves all types; `on` says which types take a
// key, and a key that is absent there is refused by name.
type Backend struct {
	Name        string          `yaml:"-"`
	Type        api.BackendType `yaml:"type" on:"ssh,slurm,agent" rule:"oneof=ssh slurm agent" doc:"ssh, slurm or agent"`
	Description string          `yaml:"description" on:"ssh,slurm,agent" doc:"Shown beside the name"`

	Host         string `yaml:"host" on:"ssh,slurm" rule:"host" doc:"Anything ssh takes: a name, an address, an alias of ~/.ssh/config"`
	User         string `yaml:"user" on:"ssh,slurm" rule:"login" doc:"Account to log in to, over what ~/.ssh/config says"`
	Port         int    `yaml:"port" on:"ssh,slurm" rule:"gte=1,lte=65535" doc:"Port, over what ~/.ssh/config says"`
	IdentityFile string `yaml:"identity_file" on:"ssh,slurm" rule:"line" doc:"Key file, over what ~/.ssh/config says"`
	Transport    string `yaml:"transport" on:"ssh,slurm" default:"auto" rule:"oneof=auto native openssh" doc:"auto, native (built in) or openssh (the installed ssh)"`

	Python            string          `yaml:"python" on:"ssh,slurm" default:"python3" rule:"line" doc:"Interpreter on the host; slurm: on the login node"`
	Packages          []string        `yaml:"packages" on:"ssh" rule:"line" doc:"Packages to install once into an environment under remote_dir, as pip takes them"`
	GPUs              Text            `yaml:"gpus" on:"ssh" default:"auto" rule:"gpus" doc:"auto takes the GPU with the most free memory; \"1\" or \"0,1\" pin; none trains on the CPU"`
	MinFreeGPUMB      int64           `yaml:"min_free_gpu_mb" on:"ssh,slurm" default:"2000" rule:"gte=0,lte=1073741824" doc:"Free memory that a GPU must have under gpus: auto; slurm: taken and not used, the scheduler chooses"`
	NumThreads        int             `yaml:"num_threads" on:"ssh,slurm" rule:"gt=0,lte=65536" doc:"Threads of the worker, over what the login shell sets"`
	RemoteDir         string          `yaml:"remote_dir" on:"ssh,slurm" default:"~/.cache/potato-training" rule:"line" doc:"Folder of code, environments and jobs on the host; slurm: required, and shared with the compute nodes"`
	Env               map[string]Text `yaml:"env" on:"ssh,slurm" doc:"Environment of everything started on the host, over what the login shell sets"`
	MaxArtifactMB     int64           `yaml:"max_artifact_mb" on:"ssh,slurm" default:"2048" rule:"gt=0,lte=1073741824" doc:"Larger model files stay on the host"`
	FetchArtifacts    bool            `yaml:"fetch_artifacts" on:"ssh,slurm" default:"true" doc:"Copy model files to this server"`
	KeepRemote        bool            `yaml:"keep_remote" on:"ssh,slurm" doc:"Keep the job's folder on the host"`
	HeartbeatTimeoutS float64         `yaml:"heartbeat_timeout_s" on:"ssh,slurm,agent" default:"120" rule:"gte=1,lte=86400" doc:"Seconds without a word from the agent after which a run fails; absent: model_training.heartbeat_timeout_s"`
	QueueTimeoutS     float64         `yaml:"queue_timeout_s" on:"slurm,agent" rule:"gt=0,lte=315360000" doc:"Seconds that a run waits for the scheduler or an agent before it fails; absent: it waits until cancelled"`

	JobPython     string   `yaml:"job_python" on:"slurm" rule:"line" doc:"Interpreter on the compute nodes; absent: as python"`
	Prelude       []string `yaml:"prelude" on:"slurm" rule:"line" doc:"Lines that the job runs before the worker, such as module loads"`
	PollIntervalS float64  `yaml:"poll_interval_s" on:"slurm" default:"10" rule:"gte=1,lte=3600" doc:"Seconds between two looks at the scheduler's queue"`
	Detach        bool     `yaml:"detach" on:"slurm" doc:"Leave the job alone when the session breaks, and pick it up again"`

	Partition     Text     `yaml:"partition" on:"slurm" sbatch:"partition" rule:"flag" doc:"Partition"`
	Account       Text     `yaml:"account" on:"slurm" sbatch:"account" rule:"flag" doc:"Account to charge"`
	QOS           Text     `yaml:"qos" on:"slurm" sbatch:"qos" rule:"flag" doc:"Quality of service"`
	GRES          Text     `yaml:"gres" on:"slurm" sbatch:"gres" rule:"flag" doc:"Resources such as gpu:1; without it the job has no GPU"`
	GPUsPerNode   Text     `yaml:"gpus_per_node" on:"slurm" sbatch:"gpus-per-node" rule:"flag" doc:"GPUs on each node"`
	Nodes         Text     `yaml:"nodes" on:"slurm" sbatch:"nodes" rule:"nodes" doc:"Number of nodes, or least-most"`
	NTasksPerNode int      `yaml:"ntasks_per_node" on:"slurm" sbatch:"ntasks-per-node" rule:"gt=0,lte=65536" doc:"Tasks on each node"`
	CPUsPerTask   int      `yaml:"cpus_per_task" on:"slurm" sbatch:"cpus-per-task" rule:"gt=0,lte=65536" doc:"Cores of the worker"`
	Mem           Text     `yaml:"mem" on:"slurm" sbatch:"mem" rule:"memory" doc:"Memory of a node, e.g. 32G"`
	MemPerGPU     Text     `yaml:"mem_per_gpu" on:"slurm" sbatch:"mem-per-gpu" rule:"memory" doc:"Memory for each GPU"`
	Time          Text     `yaml:"time" on:"slurm" sbatch:"time" rule:"slurm_time" doc:"Time limit: MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS, UNLIMITED or INFINITE"`
	Constraint    Text     `yaml:"constraint" on:"slurm" sbatch:"constraint" rule:"flag" doc:"Features that the nodes must have"`
	NodeList      Text     `yaml:"nodelist" on:"slurm" sbatch:"nodelist" rule:"flag" doc:"Nodes to use"`
	Exclude       Text     `yaml:"exclude" on:"slurm" sbatch:"exclude" rule:"flag" doc:"Nodes to avoid"`
	Reservation   Text     `yaml:"reservation" on:"slurm" sbatch:"reservation" rule:"flag" doc:"Reservation"`
	Exclusive     bool     `yaml:"exclusive" on:"slurm" sbatch:"exclusive" doc:"Share the nodes with no other job"`
	Nice          *int     `yaml:"nice" on:"slurm" sbatch:"nice" rule:"gte=-2147483645,lte=2147483645" doc:"Lowers the job's priority"`
	Licenses      Text     `yaml:"licenses" on:"slurm" sbatch:"licenses" rule:"flag" doc:"Licences that the job takes"`
	Deadline      Text     `yaml:"deadline" on:"slurm" sbatch:"deadline" rule:"flag" doc:"Time by which the job must have ended"`
	Requeue       *bool    `yaml:"requeue" on:"slurm" sbatch:"requeue" doc:"Start again after a node failure or preemption; false: never; absent: as the cluster does"`
	Signal        Text     `yaml:"signal" on:"slurm" sbatch:"signal" rule:"flag" doc:"Signal before the time limit, e.g. B:USR1@120, at which the worker saves a checkpoint"`
	MailUser      Text     `yaml:"mail_user" on:"slurm" sbatch:"mail-user" rule:"flag" doc:"Who gets mail"`
	MailType      Text     `yaml:"mail_type" on:"slurm" sbatch:"mail-type" rule:"flag" doc:"Events that send mail"`
	SbatchArgs    []string `yaml:"sbatch_args" on:"slurm" rule:"line" doc:"Further arguments for sbatch, passed as they are"`
}
