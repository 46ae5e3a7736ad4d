const BLOCK_BYTES = 512;
/** Octal digits of a size. */
const SIZE_DIGITS = 11;

export interface ArchiveFile {
  /** Letters, digits, dots and hyphens; up to 100. */
  readonly name: string;
  readonly text: string;
}

/** An archive of POSIX ustar, with files that only their owner reads. */
export function tarOf(files: readonly ArchiveFile[], timeMs: number): Buffer {
  const blocks = files.flatMap(({ name, text }) => {
    const content = Buffer.from(text);
    const padding = (BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES;
    return [header(name, content.length, timeMs), content, Buffer.alloc(padding)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function header(name: string, bytes: number, timeMs: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  block.write(name, 0, 100);
  block.write("0000600\0" + "0000000\0" + "0000000\0", 100);
  block.write(`${octal(bytes)} ${octal(Math.floor(timeMs / 1_000))} `, 124);
  // The sum is computed with blanks in its place.
  block.write("        0", 148);
  block.write("ustar\u000000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

function octal(value: number): string {
  return value.toString(8).padStart(SIZE_DIGITS, "0");
}
