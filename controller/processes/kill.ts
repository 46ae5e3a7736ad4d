/** Sends a signal to a process, or to the group that it leads. It is no error if the process has already ended. */
export function killProcess(pid: number, signal: NodeJS.Signals, isGroup: boolean): void {
  try {
    process.kill(isGroup ? -pid : pid, signal);
  } catch {
    // It has ended.
  }
}
