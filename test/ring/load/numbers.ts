export function number(value: number): Uint8Array {
  return new TextEncoder().encode(String(value));
}

export function readNumber(bytes: Uint8Array | undefined): number | undefined {
  return bytes === undefined ? undefined : Number(new TextDecoder().decode(bytes));
}
