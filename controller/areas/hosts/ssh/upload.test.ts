import { expect, test } from "vitest";
import type { SFTPWrapper } from "ssh2";
import { upload } from "./upload.ts";

/** A server that answers the opening of a file, and no request after it. */
function silentServer() {
  const asked: string[] = [];
  const sftp = {
    open: (_path: string, _flags: string, _attributes: object, answer: (error: undefined, handle: Buffer) => void) => {
      asked.push("open");
      answer(undefined, Buffer.of(1));
    },
    write: () => void asked.push("write"),
    close: () => void asked.push("close"),
    end: () => void asked.push("end"),
  };
  return { asked, connection: { sftp: () => Promise.resolve(sftp as unknown as SFTPWrapper) } };
}

test("an upload to a server that offers its files late or never ends at its signal, and closes them", async () => {
  const { asked, connection } = silentServer();
  let offer = (): void => undefined;
  const late = {
    sftp: () => new Promise<SFTPWrapper>((resolve) => (offer = () => void connection.sftp().then(resolve))),
  };
  const stop = new AbortController();
  const blobs = { read: () => Promise.reject(new Error("not read")) as never };
  const refused = expect(upload(late, blobs, { files: [], folder: "f", signal: stop.signal })).rejects.toMatchObject({
    code: "deadline",
  });
  stop.abort();
  await refused;
  offer();
  await expect.poll(() => asked).toEqual(["end"]);
});

test("an upload to a server that no longer answers ends at its signal, and closes what it reads", async () => {
  const { asked, connection } = silentServer();
  const stop = new AbortController();
  let open = 0;
  const blobs = {
    async *read() {
      open++;
      try {
        yield Buffer.from("a");
      } finally {
        open--;
      }
    },
  };
  const files = [{ path: "a", digest: "a", size: 1, executable: false }];
  const uploading = upload(connection, blobs, { files, folder: "f", signal: stop.signal });
  const refused = expect(uploading).rejects.toMatchObject({ code: "deadline" });
  await expect.poll(() => asked).toEqual(["open", "write"]);
  expect(open).toBe(1);
  stop.abort();
  await refused;
  expect([open, asked]).toEqual([0, ["open", "write", "end"]]);
});
