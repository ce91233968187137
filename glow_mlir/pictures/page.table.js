// ---- tables whose columns sort ----

class Table {
  constructor(parent, columns) {
    this.root = html("table", parent);
    this.body = null;
    this.groups = []; // Rows that stay together, those in a branch or loop behind it, and what each column sorts by.
    this.column = 0;
    const head = html("tr", html("thead", this.root));
    columns.forEach(([title, className], column) => {
      const button = html("button", html("th", head, null, className), title, "sort");
      button.type = "button";
      button.addEventListener("click", () => this.sort(column, column === this.column && !this.isReversed));
    });
    this.body = html("tbody", this.root);
    this.numbers = columns.map(([, className]) => className === "number");
    this.heads = [...head.cells];
  }

  // A row: what its columns sort by, and their texts; `null` is the key itself.
  add(keys, cells, isInner = false) {
    const row = html("tr", this.body);
    cells.forEach((text, column) => {
      const cell = html("td", row, null, this.numbers[column] ? "number" : "");
      if (this.numbers[column]) cell.textContent = text;
      else words(text ?? String(keys[column]), cell);
    });
    row.tabIndex = this.groups.length ? -1 : 0;
    row.origins = [];
    if (isInner && this.groups.length) this.groups.at(-1).rows.push(row);
    else this.groups.push({ keys, rows: [row] });
    return row;
  }

  // Numbers begin with the largest, but for that of the row; texts with the first.
  sort(column, isReversed = false) {
    [this.column, this.isReversed] = [column, isReversed];
    const isFalling = (this.numbers[column] && column > 0) !== isReversed;
    const order = (one, other) => (typeof one === "number" ? one - other : one.localeCompare(other));
    this.groups.sort((one, other) => order(one.keys[column], other.keys[column]) * (isFalling ? -1 : 1));
    this.body.append(...this.groups.flatMap((group) => group.rows));
    this.heads.forEach((head, place) => {
      head.setAttribute("aria-sort", place !== column ? "none" : isFalling ? "descending" : "ascending");
    });
    [...this.body.rows].forEach((row, place) => { row.tabIndex = place ? -1 : 0; });
  }

  choosing(row, choose) {
    row.classList.add("choosable");
    row.addEventListener("click", choose);
    row.addEventListener("keydown", (event) => walkRows(event, row));
  }
}

// Text that breaks between the words of a name: behind `_`, `-`, `/` and `.`.
function words(text, parent) {
  for (const word of text.split(/(?<=[_/.-])(?=...)/)) parent.append(word, document.createElement("wbr"));
}

// One row is a stop of Tab; arrows lead from row to row, and Enter chooses.
function walkRows(event, row) {
  if (event.key === "Enter") row.click();
  const other = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
  if (!other) return;
  event.preventDefault();
  row.tabIndex = -1;
  other.tabIndex = 0;
  other.focus();
}
