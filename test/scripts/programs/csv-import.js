/* Reads a file of comma separated values with quotes, and makes an object of each line that is right. */
var request = JSON.parse(decodeURIComponent(INPUT));

function fieldsOf(line) {
  var fields = [];
  var field = "";
  var quoted = false;
  for (var i = 0; i < line.length; i++) {
    var c = line.charAt(i);
    if (quoted) {
      if (c === '"' && line.charAt(i + 1) === '"') {
        field += '"';
        i++;
      } else if (c === '"') quoted = false;
      else field += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") {
      fields.push(field);
      field = "";
    } else field += c;
  }
  if (quoted) throw new Error("a quote is not closed");
  fields.push(field);
  return fields;
}

dfs.write(request.path, request.text);
var lines = dfs.read(request.path).split(/\r?\n/);
var heading = fieldsOf(lines.shift());
var problems = [];
var made = 0;

_.each(lines, function (line, at) {
  if (/^\s*$/.test(line)) return;
  try {
    var fields = fieldsOf(line);
    if (fields.length !== heading.length) throw new Error(fields.length + " fields");
    var row = _.object(heading, fields);
    var price = parseFloat(row.price);
    if (isNaN(price)) throw new Error("no price");
    odb.mql("INSERT INTO /matrix/csv/part (code, title, price) VALUES (?, ?, ?)", row.code, row.title, price);
    made++;
  } catch (error) {
    problems.push("line " + (at + 2) + ": " + error.message);
  }
});

_.each(problems, function (text) {
  log.error(text);
});
OUTPUT = { made: made, problems: problems };
