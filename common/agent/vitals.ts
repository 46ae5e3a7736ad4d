/** Facts that change all the time. An agent reports them again and again; a target cannot depend on them. */
export const VITAL_FACTS = [
  "cpu_usedpercent",
  "disk_usedpercent",
  "load_1m",
  "memory_usedpercent",
  "pid",
  "uptime_s",
] as const;
