/** A sortable table that renders one page of rows, so that ten thousand cost no more than a hundred. */

import {
  type ColumnDef,
  flexRender,
  getCoreRowModel,
  getPaginationRowModel,
  getSortedRowModel,
  type RowData,
  type RowSelectionState,
  type SortingState,
  useReactTable,
} from "@tanstack/react-table";
import { type ReactNode, useEffect, useState } from "react";
import { t } from "../language";
import { useWide } from "../theme";
import { count } from "../words";
import { Button } from "./basics";

declare module "@tanstack/react-table" {
  interface ColumnMeta<TData extends RowData, TValue> {
    numeric?: boolean;
    /** Hidden in windows narrower than this. */
    from?: "sm" | "md" | "lg" | "xl";
    grow?: boolean;
  }
}

const WIDTHS = { sm: 640, md: 768, lg: 1024, xl: 1280 };
const PAGE = 100;

/** A column of numbers: `show` writes one as text. */
export function numbers<T>(
  header: string,
  key: { [K in keyof T]-?: T[K] extends number | null | undefined ? K : never }[keyof T] & string,
  from?: "sm" | "md" | "lg" | "xl",
  show: (value: number) => string = count,
): ColumnDef<T> {
  return {
    header,
    accessorFn: (row) => row[key],
    id: key,
    meta: { numeric: true, from },
    cell: ({ getValue }) => show(getValue<number>()),
  };
}

export function Table<T>({
  label,
  rows,
  columns,
  id,
  sort = [],
  sortable = true,
  empty,
  selection,
}: {
  label: string;
  rows: T[];
  columns: ColumnDef<T>[];
  id: (row: T) => string;
  sort?: SortingState;
  sortable?: boolean;
  empty: ReactNode;
  selection?: { chosen: RowSelectionState; choose: (chosen: RowSelectionState) => void };
}) {
  const [sorting, setSorting] = useState<SortingState>(sort);
  const [pagination, setPagination] = useState({ pageIndex: 0, pageSize: PAGE });
  const wide = { sm: useWide(WIDTHS.sm), md: useWide(WIDTHS.md), lg: useWide(WIDTHS.lg), xl: useWide(WIDTHS.xl) };
  const shown = columns.filter((column) => !column.meta?.from || wide[column.meta.from]);
  const table = useReactTable({
    data: rows,
    columns: shown,
    state: { sorting, pagination, rowSelection: selection?.chosen ?? {} },
    getRowId: id,
    enableSorting: sortable,
    enableRowSelection: Boolean(selection),
    autoResetPageIndex: false,
    onSortingChange: setSorting,
    onPaginationChange: setPagination,
    onRowSelectionChange: (change) =>
      selection?.choose(typeof change === "function" ? change(selection.chosen) : change),
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
    getPaginationRowModel: getPaginationRowModel(),
  });
  const pages = table.getPageCount();
  useEffect(() => {
    if (pages && pagination.pageIndex >= pages) setPagination((old) => ({ ...old, pageIndex: pages - 1 }));
  }, [pages, pagination.pageIndex]);
  if (rows.length === 0) return <>{empty}</>;
  const first = pagination.pageIndex * PAGE;
  return (
    <>
      <div className="relative overflow-x-auto" role="region" aria-label={label} tabIndex={0}>
        <table className="w-full border-collapse text-sm">
          <thead>
            {table.getHeaderGroups().map((group) => (
              <tr key={group.id} className="border-b border-line bg-ground text-left text-xs text-muted">
                {group.headers.map((header) => {
                  const { meta } = header.column.columnDef;
                  const direction = header.column.getIsSorted();
                  const content = flexRender(header.column.columnDef.header, header.getContext());
                  return (
                    <th
                      key={header.id}
                      scope="col"
                      aria-sort={direction === "asc" ? "ascending" : direction === "desc" ? "descending" : undefined}
                      className={`px-2 py-2 font-medium sm:px-3 whitespace-nowrap ${meta?.numeric ? "text-right" : ""} ${meta?.grow ? "w-full" : ""}`}
                    >
                      {header.column.getCanSort() ? (
                        <button
                          type="button"
                          className={`inline-flex items-center align-middle font-medium hover:text-ink ${meta?.numeric ? "flex-row-reverse" : ""}`}
                          onClick={header.column.getToggleSortingHandler()}
                        >
                          {content}
                          <span aria-hidden="true" className="inline-block w-3 text-center">
                            {direction === "asc" ? "↑" : direction === "desc" ? "↓" : ""}
                          </span>
                        </button>
                      ) : (
                        <span className="align-middle">{content}</span>
                      )}
                    </th>
                  );
                })}
              </tr>
            ))}
          </thead>
          <tbody>
            {table.getRowModel().rows.map((row) => (
              <tr
                key={row.id}
                className={`h-[2.3125rem] border-b border-line last:border-0 hover:bg-sunken ${row.getIsSelected() ? "bg-accent-soft" : ""}`}
              >
                {row.getVisibleCells().map((cell) => (
                  <td
                    key={cell.id}
                    className={`px-2 py-1.5 align-middle sm:px-3 ${cell.column.columnDef.meta?.numeric ? "num" : ""} ${cell.column.columnDef.meta?.grow ? "max-w-0 min-w-40" : ""}`}
                  >
                    {flexRender(cell.column.columnDef.cell, cell.getContext())}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {pages > 1 && (
        <div className="flex items-center gap-2 border-t border-line px-3 py-2 text-xs text-muted">
          <span>
            {t("{first}–{last} of {total}", {
              first: first + 1,
              last: Math.min(first + PAGE, rows.length),
              total: rows.length,
            })}
          </span>
          <Button small className="ml-auto" disabled={!table.getCanPreviousPage()} onClick={() => table.previousPage()}>
            {t("Previous page")}
          </Button>
          <Button small disabled={!table.getCanNextPage()} onClick={() => table.nextPage()}>
            {t("Next page")}
          </Button>
        </div>
      )}
    </>
  );
}
