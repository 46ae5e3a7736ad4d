/** How a client's calls reach the store: directly here, with delays and faults in the simulation. */
export interface StoreCall {
  read<T>(name: string, action: () => T): Promise<T>;
  /**
   * `partly` executes only the first of several parts, as an interrupted batch would. Its argument returns the number
   * to execute for a given total.
   */
  write<T>(name: string, action: () => T, partly?: (count: (of: number) => number) => void): Promise<T>;
  /** For watches, which survive every outage. */
  watch<T>(action: () => T): Promise<T>;
}
