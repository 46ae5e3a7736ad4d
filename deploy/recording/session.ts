/** The commands of the recording in the README: the first minutes with a controller, its agent and its demonstration. */
export const RECORDED: readonly string[] = [
  "odp host list --fields host,status,policies",
  "odp exec '*' uptime",
  'odp mql "select load1, memory_used from /matrix/demo/load order by vtime desc limit 3"',
  "odp policy status demo-load",
  "odp job runs --limit 1 --fields name,host,status",
  "odp perm explain --class /matrix/demo/load",
];

/** Columns of the terminal. */
export const COLUMNS = 96;
