import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { look } from "../folder.ts";
import { Writers } from "./writer.ts";

/** Processes with open files, as Linux shows them, and two empty logs. */
class Processes implements AsyncDisposable {
  readonly root: string;
  readonly folder: string;

  private constructor(root: string) {
    this.root = root;
    this.folder = join(root, "proc");
  }

  static async begin(): Promise<Processes> {
    const processes = new Processes(await realpath(await mkdtemp(join(tmpdir(), "odp-writers-"))));
    await mkdir(processes.folder);
    for (const name of ["a.log", "b.log"]) await writeFile(join(processes.root, name), "");
    return processes;
  }

  async open(fd: string, name: string): Promise<void> {
    const [process = ""] = fd.split("/");
    for (const kind of ["fd", "fdinfo"]) await mkdir(join(this.folder, process, kind), { recursive: true });
    await symlink(join(this.root, name), join(this.folder, fd.replace("/", "/fd/")));
    await this.write(fd, 0);
  }

  write(fd: string, place: number): Promise<void> {
    const info = `pos:\t${place}\nflags:\t0102001\n`;
    return writeFile(join(this.folder, fd.replace("/", "/fdinfo/")), info);
  }

  async lengthBeforeCut(writers: Writers, path: string): Promise<number | undefined> {
    const at = await look(this.root, path);
    return at && writers.lengthBeforeCut(this.root, at);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true });
  }
}

test("one look lists the open files of a host once, for all logs; positions are those of the moment", async () => {
  await using processes = await Processes.begin();
  const writers = new Writers({ processes: processes.folder });
  await processes.open("1/3", "a.log");
  await processes.open("2/3", "b.log");
  writers.beginLook();
  await processes.write("1/3", 10);
  expect(await processes.lengthBeforeCut(writers, "a.log")).toBe(10);
  await processes.write("2/3", 20);
  await processes.open("3/3", "b.log");
  expect(await processes.lengthBeforeCut(writers, "b.log")).toBe(20);
  writers.beginLook();
  expect(await processes.lengthBeforeCut(writers, "b.log")).toBeUndefined();
});

test("a descriptor that leads to another file by now is that of no writer", async () => {
  await using processes = await Processes.begin();
  const writers = new Writers({ processes: processes.folder });
  await processes.open("1/3", "a.log");
  await processes.write("1/3", 10);
  expect(await processes.lengthBeforeCut(writers, "a.log")).toBe(10);
  await rm(join(processes.folder, "1/fd/3"));
  await processes.open("1/3", "b.log");
  await processes.write("1/3", 10);
  expect(await processes.lengthBeforeCut(writers, "a.log")).toBeUndefined();
});

test("on a host with more open files than are listed, no position is known", async () => {
  await using processes = await Processes.begin();
  const writers = new Writers({ processes: processes.folder, descriptorsMax: 2 });
  for (const fd of ["1/3", "1/4"]) await processes.open(fd, "b.log");
  await processes.write("1/3", 10);
  await processes.write("1/4", 10);
  expect(await processes.lengthBeforeCut(writers, "b.log")).toBe(10);
  await processes.open("2/3", "a.log");
  writers.beginLook();
  expect(await processes.lengthBeforeCut(writers, "b.log")).toBeUndefined();
});

test("without the processes of the host, no position is known", async () => {
  await using processes = await Processes.begin();
  const writers = new Writers({ processes: join(processes.root, "none") });
  expect(await processes.lengthBeforeCut(writers, "a.log")).toBeUndefined();
});
