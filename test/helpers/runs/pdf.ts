/** A pdf of these objects; the first is the catalog. `trailer` has further entries. */
export function pdfOf(objects: readonly string[], trailer = ""): Buffer {
  let text = "%PDF-1.5\n";
  const places = objects.map((object, at) => {
    const place = text.length;
    text += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return place;
  });
  const table = places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("");
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`;
  const start = text.lastIndexOf("xref\n0");
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`;
  return Buffer.from(text, "latin1");
}

export const pdfStream = (content: string) => `<< /Length ${content.length} >>\nstream\n${content}\nendstream`;

export const PDF_LATIN = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>";

/** A pdf with one page for each content. */
export function pdfPages(contents: readonly string[], { font = PDF_LATIN, trailer = "" } = {}): Buffer {
  const kids = contents.map((_, at) => `${4 + 2 * at} 0 R`).join(" ");
  const page = (at: number) =>
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + 2 * at} 0 R >>`;
  return pdfOf(
    [
      "<< /Type /Catalog /Pages 2 0 R >>",
      `<< /Type /Pages /Kids [${kids}] /Count ${contents.length} >>`,
      font,
      ...contents.flatMap((content, at) => [page(at), pdfStream(content)]),
    ],
    trailer,
  );
}
