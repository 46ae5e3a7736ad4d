/** Sends a signal to a process, or to the group that it leads. A process that has ended meanwhile is no error. */
export function killProcess(pid: number, signal: NodeJS.Signals, isGroup: boolean): void {
  try {
    process.kill(isGroup ? -pid : pid, signal);
  } catch {
    // It has ended.
  }
}
