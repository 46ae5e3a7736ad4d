import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ZipFile } from "yazl";

/** One entry of an archive, possibly a hostile one. */
export interface ArchiveEntry {
  readonly name: string;
  readonly content?: string | Buffer;
  /** Tar type flag: "0" is a file, "2" a symbolic link, "5" a folder. */
  readonly flag?: string;
  readonly link?: string;
  readonly mode?: number;
}

const BLOCK = 512;

/** Creates a ustar archive. Nothing is checked; names are written as given. */
export function tarOf(entries: readonly ArchiveEntry[], options: { readonly withEnd?: boolean } = {}): Buffer {
  const end = options.withEnd === false ? [] : [Buffer.alloc(2 * BLOCK)];
  return Buffer.concat([...entries.flatMap(tarEntry), ...end]);
}

function tarEntry(entry: ArchiveEntry): Buffer[] {
  const content = Buffer.from(entry.content ?? "");
  return [tarHeader(entry, content.length), content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)];
}

export function tarHeader(entry: ArchiveEntry, size: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  header.write(entry.name, 0, 100, "utf8");
  header.write(octal(entry.mode ?? 0o644, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(size, 11), 124);
  header.write(octal(0, 11), 136);
  header.write("        ", 148);
  header.write(entry.flag ?? "0", 156);
  header.write(entry.link ?? "", 157, 100);
  header.write("ustar\0" + "00", 257, "latin1");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(octal(sum, 6) + "\0 ", 148, "latin1");
  return header;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}

/** Creates a zip archive. Names that yazl refuses are inserted afterwards, with the same length. */
export async function zipOf(entries: readonly ArchiveEntry[]): Promise<Buffer> {
  const zip = new ZipFile();
  const renamed = new Map<string, string>();
  for (const [index, entry] of entries.entries()) {
    const stand = `${index}`.padEnd(Buffer.byteLength(entry.name), "~");
    renamed.set(stand, entry.name);
    zip.addBuffer(Buffer.from(entry.content ?? ""), stand, { mode: entry.mode ?? 0o100644 });
  }
  zip.end();
  const pieces: Buffer[] = [];
  for await (const piece of zip.outputStream) pieces.push(Buffer.from(piece));
  return renameInside(Buffer.concat(pieces), renamed);
}

function renameInside(zip: Buffer, names: ReadonlyMap<string, string>): Buffer {
  for (const [from, to] of names) {
    for (let at = zip.indexOf(from); at >= 0; at = zip.indexOf(from, at + 1)) zip.write(to, at, "utf8");
  }
  return zip;
}

/** Creates a folder for uploads and a function that removes it. */
export async function uploadFolder() {
  const folder = await mkdtemp(join(tmpdir(), "odp-uploads-"));
  let count = 0;
  return {
    async upload(filename: string, content: string | Buffer) {
      const path = join(folder, `upload-${count++}`);
      await writeFile(path, content);
      return { filename, path, size: Buffer.byteLength(content) };
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
