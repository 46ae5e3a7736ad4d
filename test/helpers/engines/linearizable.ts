/** One call in a history. All times are from one clock. */
export interface Operation<O> {
  readonly what: O;
  readonly invokedMs: number;
  /** Absent: the caller got no result. The call may take effect at any later time or never. */
  readonly returnedMs?: number;
}

/** Behaviour of one object when calls come one after the other. */
export interface Model<S, O> {
  readonly initial: S;
  /** The state after the call; `undefined` if the recorded result is impossible in this state. */
  step(state: S, operation: Operation<O>): S | undefined;
  /** A text that differs for different states. */
  name(state: S): string;
}

/**
 * Returns true if every call can have taken effect at one moment between its start and its end (Wing and Gong, with
 * Lowe's cache, "Testing for linearizability", 2017). The search takes calls one by one, among those that began before
 * the first of the others ended. It never visits the same set of calls with the same state twice.
 */
export function isLinearizable<S, O>(history: readonly Operation<O>[], model: Model<S, O>): boolean {
  const calls = [...history].sort((one, other) => one.invokedMs - other.invokedMs);
  const seen = new Set<string>();
  const paths: { readonly taken: bigint; readonly state: S }[] = [{ taken: 0n, state: model.initial }];
  for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
    const { taken, state } = path;
    const open = calls.flatMap((call, at) => ((taken >> BigInt(at)) & 1n ? [] : [{ call, bit: 1n << BigInt(at) }]));
    if (open.every(({ call }) => call.returnedMs === undefined)) return true;
    const firstEndMs = Math.min(...open.map(({ call }) => call.returnedMs ?? Infinity));
    for (const { call, bit } of open) {
      if (call.invokedMs > firstEndMs) break;
      const next = model.step(state, call);
      if (next === undefined) continue;
      const name = `${(taken | bit).toString(36)} ${model.name(next)}`;
      if (!seen.has(name)) paths.push({ taken: taken | bit, state: next });
      seen.add(name);
    }
  }
  return false;
}

/** A call on one key whose value may expire. */
export type RegisterCall =
  | { readonly kind: "set"; readonly value: string; readonly ttlMs?: number }
  | { readonly kind: "delete"; readonly found: boolean }
  | { readonly kind: "get"; readonly value: string | undefined };

interface Register {
  readonly value: string | undefined;
  /** Earliest expiry, and the time by which it must have expired. */
  readonly ends?: { readonly fromMs: number; readonly byMs: number };
}

/** `skewMs`: maximum difference between the clocks of the members that answer. */
export function expiringRegister(skewMs = 0): Model<Register, RegisterCall> {
  const absent: Register = { value: undefined };
  const mayBeAbsent = ({ value, ends }: Register, call: Operation<RegisterCall>): boolean =>
    value === undefined || (ends !== undefined && (call.returnedMs ?? Infinity) >= ends.fromMs);
  const mayBeThere = ({ value, ends }: Register, call: Operation<RegisterCall>): boolean =>
    value !== undefined && (ends === undefined || call.invokedMs <= ends.byMs);
  return {
    initial: absent,
    name: ({ value, ends }) => `${value ?? ""} ${ends?.fromMs ?? ""}`,
    step(state, call) {
      const { what, invokedMs, returnedMs = Infinity } = call;
      switch (what.kind) {
        case "set":
          if (what.ttlMs === undefined) return { value: what.value };
          return {
            value: what.value,
            ends: { fromMs: invokedMs + what.ttlMs - skewMs, byMs: returnedMs + what.ttlMs + skewMs },
          };
        case "delete":
          return what.found || mayBeAbsent(state, call) ? absent : undefined;
        case "get":
          if (what.value === undefined) return mayBeAbsent(state, call) ? absent : undefined;
          return what.value === state.value && mayBeThere(state, call) ? state : undefined;
      }
    },
  };
}
