/** How a client's calls reach the store: at once here, with delays and faults in the simulation. */
export interface StoreCall {
  read<T>(name: string, action: () => T): Promise<T>;
  /**
   * `partly` does the first so many of several parts, as an interrupted batch would; it is told how many by the given
   * function.
   */
  write<T>(name: string, action: () => T, partly?: (count: (of: number) => number) => void): Promise<T>;
  /** What waits out every outage inside. */
  watch<T>(action: () => T): Promise<T>;
}
